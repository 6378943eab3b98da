// Trains 20 steps on two CPU ranks with plain LibTorch, to show that a C++ program compiled in an
// image trains in it: `yoke launch --ranks 2 -- train20`. Gradients are averaged through torch's
// own store, so that nothing but the wheel is needed.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/nn.h>
#include <torch/optim.h>

namespace {

constexpr int kSteps = 20;

int number(const char* name) { return std::atoi(std::getenv(name)); }

/// The mean of `gradient` over the ranks; a key per step, parameter and rank.
void average(c10d::Store& store, torch::Tensor gradient, const std::string& key, int rank,
             int ranks) {
  const auto bytes = static_cast<std::size_t>(gradient.numel()) * sizeof(float);
  std::vector<std::uint8_t> mine(bytes);
  std::memcpy(mine.data(), gradient.contiguous().data_ptr<float>(), bytes);
  store.set(key + std::to_string(rank), mine);
  torch::Tensor sum = torch::zeros_like(gradient);
  for (int other = 0; other < ranks; ++other) {
    std::vector<std::uint8_t> theirs = store.get(key + std::to_string(other));
    sum += torch::from_blob(theirs.data(), gradient.sizes(), torch::kFloat);
  }
  gradient.copy_(sum / ranks);
}

}  // namespace

int main() {
  const int rank = number("RANK");
  const int ranks = number("WORLD_SIZE");
  torch::set_num_threads(1);
  const auto store = c10::make_intrusive<c10d::FileStore>(
      "/tmp/train20-" + std::to_string(number("MASTER_PORT")), ranks);

  torch::manual_seed(1);
  torch::nn::Sequential model(torch::nn::Linear(8, 16), torch::nn::ReLU(),
                              torch::nn::Linear(16, 1));
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  torch::manual_seed(100 + rank);
  const torch::Tensor input = torch::randn({64, 8});
  const torch::Tensor target = input.sum(1, /*keepdim=*/true) * 0.5;
  double first = 0.0;
  double last = 0.0;
  for (int step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    torch::Tensor loss = torch::mse_loss(model->forward(input), target);
    loss.backward();
    int index = 0;
    for (auto& parameter : model->parameters())
      average(*store, parameter.mutable_grad(),
              "g" + std::to_string(step) + "/" + std::to_string(index++) + "/", rank, ranks);
    optimizer.step();
    last = loss.item<double>();
    if (step == 0) first = last;
  }
  double sum = 0.0;
  for (const auto& parameter : model->parameters()) sum += parameter.sum().item<double>();
  std::printf("rank %d of %d: loss %.6f -> %.6f, weights %.9f\n", rank, ranks, first, last, sum);
  return last < 0.5 * first ? 0 : 1;
}
