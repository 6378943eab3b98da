// N ranks must train as one process on the joined batch does: 20 steps, with and without momentum, the last batch of each
// epoch uneven. Tolerance per tensor |a - b| / |b|: sums run in another order, so fp64 1e-12 and fp32 1e-5.

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "yoke/comm/local_ranks.hpp"
#include "yoke/parallel/distributed_data_parallel.hpp"

namespace yoke::parallel {
namespace {

struct SmallNet : torch::nn::Module {
  SmallNet() {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 4, 3)));
    hidden = register_module("hidden", torch::nn::Linear(4 * 6 * 6, 16));
    out = register_module("out", torch::nn::Linear(16, 5));
  }
  at::Tensor forward(const at::Tensor& x) {
    return out->forward(at::tanh(hidden->forward(at::relu(conv->forward(x)).flatten(1))));
  }
  torch::nn::Conv2d conv = nullptr;
  torch::nn::Linear hidden = nullptr;
  torch::nn::Linear out = nullptr;
};

struct Setting {
  at::ScalarType dtype;
  double momentum;
  double tolerance;
};

constexpr int kSteps = 20;
constexpr std::int64_t kBatch = 23;  // joined; odd, so that no number of ranks divides it

at::Tensor images(int step, at::ScalarType dtype) {
  return at::sin(at::arange(kBatch * 64, at::kDouble) * (0.37 + 0.01 * step)).view({kBatch, 1, 8, 8}).to(dtype);
}
at::Tensor labels(int step) { return (at::arange(kBatch, at::kLong) * 7 + step).remainder(5); }

std::shared_ptr<SmallNet> fresh_net(at::ScalarType dtype) {
  auto net = std::make_shared<SmallNet>();
  net->to(dtype);
  const at::NoGradGuard no_grad;
  double phase = 0.1;
  for (at::Tensor& parameter : net->parameters()) {
    parameter.copy_(at::cos(at::arange(parameter.numel(), at::kDouble) * phase).view(parameter.sizes()) * 0.2);
    phase += 0.13;
  }
  return net;
}

class Sgd {
 public:
  Sgd(std::vector<at::Tensor> parameters, double momentum) : parameters_(std::move(parameters)), momentum_(momentum) {
    for (const at::Tensor& parameter : parameters_) velocity_.push_back(at::zeros_like(parameter));
  }
  void step() {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      velocity_[i].mul_(momentum_).add_(parameters_[i].grad());
      parameters_[i].sub_(velocity_[i], 0.05);
      parameters_[i].mutable_grad() = at::Tensor();
    }
  }

 private:
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> velocity_;
  double momentum_;
};

std::vector<at::Tensor> train_alone(const Setting& setting) {
  auto net = fresh_net(setting.dtype);
  Sgd optimizer(net->parameters(), setting.momentum);
  for (int step = 0; step < kSteps; ++step) {
    at::cross_entropy_loss(net->forward(images(step, setting.dtype)), labels(step)).backward();
    optimizer.step();
  }
  return net->parameters();
}

std::vector<at::Tensor> train_ranks(int ranks, const Setting& setting) {
  std::vector<std::vector<at::Tensor>> results(static_cast<std::size_t>(ranks));
  comm::run_local_ranks(ranks, [&](comm::World& world) {
    auto net = fresh_net(setting.dtype);
    DistributedDataParallel parallel(net, world, {.first_bucket_bytes = 256, .bucket_bytes = 1024});
    Sgd optimizer(parallel.parameters(), setting.momentum);
    const std::int64_t begin = kBatch * world.rank() / world.size();
    const std::int64_t end = kBatch * (world.rank() + 1) / world.size();
    for (int step = 0; step < kSteps; ++step) {
      const at::Tensor mine = images(step, setting.dtype).narrow(0, begin, end - begin);
      at::cross_entropy_loss(parallel(mine), labels(step).narrow(0, begin, end - begin)).backward();
      optimizer.step();
    }
    results[static_cast<std::size_t>(world.rank())] = net->parameters();
  });
  for (const auto& other : results) {
    for (std::size_t i = 0; i < other.size(); ++i) {
      EXPECT_TRUE(at::equal(other[i], results[0][i])) << "ranks ended with different bits";
    }
  }
  return results[0];
}

class Equality : public ::testing::TestWithParam<std::tuple<int, Setting>> {};

TEST_P(Equality, RanksTrainAsOneProcessOnTheJoinedBatch) {
  const auto& [ranks, setting] = GetParam();
  const auto alone = train_alone(setting);

  const auto together = train_ranks(ranks, setting);
  const auto again = train_ranks(ranks, setting);

  for (std::size_t i = 0; i < alone.size(); ++i) {
    const double difference = (together[i] - alone[i]).norm().item<double>() / alone[i].norm().item<double>();
    EXPECT_LT(difference, setting.tolerance) << "tensor " << i;
    EXPECT_TRUE(at::equal(together[i], again[i])) << "two runs gave different bits";
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Equality,
                         ::testing::Combine(::testing::Values(1, 2, 4),
                                            ::testing::Values(Setting{at::kDouble, 0.0, 1e-12},
                                                              Setting{at::kDouble, 0.9, 1e-12},
                                                              Setting{at::kFloat, 0.0, 1e-5},
                                                              Setting{at::kFloat, 0.9, 1e-5})));

}  // namespace
}  // namespace yoke::parallel
