#pragma once

// What equality means: N ranks train as one process on the joined batch does, over 20 steps, with
// and without momentum, with a batch that no number of ranks divides. Tolerance per tensor |a - b|
// / |b|: the sums run in another order, so 1e-12 in fp64 and 1e-5 in fp32.

#include <memory>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "yoke/comm/world.hpp"
#include "yoke/parallel/distributed_data_parallel.hpp"

namespace yoke::parallel::equality {

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

inline constexpr int kSteps = 20;
inline constexpr std::int64_t kBatch = 23;  // joined; odd, so that no number of ranks divides it

inline at::Tensor images(int step, at::ScalarType dtype) {
  return at::sin(at::arange(kBatch * 64, at::kDouble) * (0.37 + 0.01 * step))
      .view({kBatch, 1, 8, 8})
      .to(dtype);
}
inline at::Tensor labels(int step) {
  return (at::arange(kBatch, at::kLong) * 7 + step).remainder(5);
}

inline std::shared_ptr<SmallNet> fresh_net(at::ScalarType dtype) {
  auto net = std::make_shared<SmallNet>();
  net->to(dtype);
  const at::NoGradGuard no_grad;
  double phase = 0.1;
  for (at::Tensor& parameter : net->parameters()) {
    parameter.copy_(
        at::cos(at::arange(parameter.numel(), at::kDouble) * phase).view(parameter.sizes()) * 0.2);
    phase += 0.13;
  }
  return net;
}

class Sgd {
 public:
  Sgd(std::vector<at::Tensor> parameters, double momentum)
      : parameters_(std::move(parameters)), momentum_(momentum) {
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

inline std::vector<at::Tensor> train_alone(const Setting& setting, at::Device device = at::kCPU) {
  auto net = fresh_net(setting.dtype);
  net->to(device);
  Sgd optimizer(net->parameters(), setting.momentum);
  for (int step = 0; step < kSteps; ++step) {
    const at::Tensor batch = images(step, setting.dtype).to(device);
    at::cross_entropy_loss(net->forward(batch), labels(step).to(device)).backward();
    optimizer.step();
  }
  return net->parameters();
}

/// This rank's part of the same training; buckets so small that there are many.
inline std::vector<at::Tensor> train_rank(comm::World& world, const Setting& setting) {
  auto net = fresh_net(setting.dtype);
  net->to(world.device());
  DistributedDataParallel parallel(net, world, {.first_bucket_bytes = 256, .bucket_bytes = 1024});
  Sgd optimizer(parallel.parameters(), setting.momentum);
  const std::int64_t begin = kBatch * world.rank() / world.size();
  const std::int64_t end = kBatch * (world.rank() + 1) / world.size();
  for (int step = 0; step < kSteps; ++step) {
    const auto mine = [&](const at::Tensor& whole) {
      return whole.narrow(0, begin, end - begin).to(world.device());
    };
    at::cross_entropy_loss(parallel(mine(images(step, setting.dtype))), mine(labels(step)))
        .backward();
    optimizer.step();
  }
  return net->parameters();
}

/// The largest |a - b| / |b| over tensors.
inline double difference(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, (a[i] - b[i]).norm().item<double>() / b[i].norm().item<double>());
  }
  return worst;
}

inline const std::vector<Setting> kSettings{{at::kDouble, 0.0, 1e-12},
                                            {at::kDouble, 0.9, 1e-12},
                                            {at::kFloat, 0.0, 1e-5},
                                            {at::kFloat, 0.9, 1e-5}};

}  // namespace yoke::parallel::equality
