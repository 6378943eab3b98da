// A training program whose rank 1 goes wrong in the way that its first word names; for the tests
// beside it.

#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "yoke/comm/world.hpp"
#include "yoke/data/data_loader.hpp"
#include "yoke/data/synthetic.hpp"
#include "yoke/models/small_cnn.hpp"
#include "yoke/optim/sgd.hpp"
#include "yoke/parallel/distributed_data_parallel.hpp"
#include "yoke/train/run.hpp"
#include "yoke/train/trainer.hpp"

namespace {

using yoke::World;

bool is_culprit(const World& world) { return world.rank() == 1; }

/// Some steps of a small model; `in_step(step)` runs before each.
void train(World& world, const std::function<void(int step)>& in_step) {
  torch::nn::Linear model(4, 2);
  yoke::DistributedDataParallel parallel(model, world);
  for (int step = 0; step < 5; ++step) {
    in_step(step);
    parallel(torch::ones({2, 4})).sum().backward();
  }
}

void train_until(World& world, const std::function<void()>& fault) {
  train(world, [&](int step) {
    if (step == 2 && is_culprit(world)) fault();
  });
}

void other_model(World& world) {
  torch::nn::Linear model(4, is_culprit(world) ? 3 : 2);
  yoke::DistributedDataParallel parallel(model, world);
}

void changed_model(World& world) {
  torch::nn::Linear model(4, 2);
  yoke::DistributedDataParallel parallel(model, world);
  if (is_culprit(world)) model->bias.set_requires_grad(false);
  parallel(torch::ones({2, 4})).sum().backward();
}

void nan_loss(World& world) {
  auto model = yoke::models::small_cnn();
  yoke::data::DataLoader loader(yoke::data::Synthetic({.length = 64}), world, {.batch_size = 4});
  yoke::optim::SGD optimizer(model->named_parameters(), {.lr = 0.01});
  int calls = 0;
  const auto loss = [&](const torch::Tensor& output, const torch::Tensor& target) {
    const bool bad = ++calls == 3 && is_culprit(world);
    return torch::cross_entropy_loss(output, target) *
           (bad ? std::numeric_limits<double>::quiet_NaN() : 1.0);
  };
  yoke::train::Trainer trainer(model, world, {.loss = loss});
  (void)trainer.fit(loader, optimizer);
}

/// A module that drops half of what it gets, and says what it kept.
struct Dropping : torch::nn::Module {
  Dropping() { w = register_parameter("w", torch::ones({1})); }
  torch::Tensor forward(const torch::Tensor& input) {
    const auto kept = torch::dropout(torch::ones({1000}), 0.5, /*train=*/true);
    std::uint64_t hash = 1469598103934665603ULL;
    for (std::int64_t i = 0; i < kept.numel(); ++i) {
      hash = (hash ^ (kept[i].item<float>() > 0 ? 1U : 0U)) * 1099511628211ULL;
    }
    mask = hash;
    return input.flatten(1).slice(1, 0, 1) * w;
  }
  torch::Tensor w;
  std::uint64_t mask = 0;
};

void dropout_masks(World& world) {
  auto model = std::make_shared<Dropping>();
  yoke::data::DataLoader loader(yoke::data::Synthetic({.length = 8}), world, {.batch_size = 8});
  yoke::optim::SGD optimizer(model->named_parameters(), {.lr = 0.01});
  const auto loss = [](const torch::Tensor& output, const torch::Tensor&) { return output.mean(); };
  yoke::train::Trainer trainer(model, world, {.loss = loss, .max_steps = 1, .seed = 42});
  (void)trainer.fit(loader, optimizer);
  std::printf("mask of rank %d: %016llx, weight %a\n", world.rank(),
              static_cast<unsigned long long>(model->mask), model->w.item<double>());
}

const std::map<std::string, std::function<void(World&)>> kFaults{
    {"none", [](World& world) { train_until(world, [] {}); }},
    {"throw",
     [](World& world) { train_until(world, [] { throw std::runtime_error("bad sample 42"); }); }},
    {"exit7", [](World& world) { train_until(world, [] { ::_exit(7); }); }},
    {"kill", [](World& world) { train_until(world, [] { ::raise(SIGKILL); }); }},
    {"segv", [](World& world) { train_until(world, [] { ::raise(SIGSEGV); }); }},
    {"stop", [](World& world) { train_until(world, [] { ::raise(SIGSTOP); }); }},
    {"other-model", other_model},
    {"changed-model", changed_model},
    {"nan", nan_loss},
    {"dropout", dropout_masks},
};

}  // namespace

int main(int argc, char** argv) {
  return yoke::run(argc, argv,
                   [&](World& world) { kFaults.at(argc > 1 ? argv[1] : "none")(world); });
}
