// Activation recomputation inside a wrapped model: parameters get their gradients in several parts,
// from nested backward passes, and must be averaged whole and once.

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include "yoke/comm/local_ranks.hpp"
#include "yoke/nn/checkpoint.hpp"
#include "yoke/parallel/distributed_data_parallel.hpp"

namespace yoke::parallel {
namespace {

/// A trunk used in two recomputed segments, between a first layer and a head.
struct Recomputed : torch::nn::Module {
  explicit Recomputed(bool on) : recompute(on) {
    first = register_module("first", torch::nn::Linear(3, 4));
    trunk = register_module("trunk", torch::nn::Linear(4, 4));
    head = register_module("head", torch::nn::Linear(4, 1));
    const at::NoGradGuard no_grad;
    double phase = 0.2;
    for (at::Tensor& parameter : parameters()) {
      const at::Tensor wave = at::cos(at::arange(parameter.numel(), at::kDouble) + phase);
      parameter.set_data(wave.view(parameter.sizes()));
      phase += 0.7;
    }
  }
  at::Tensor segment(const at::Tensor& h) {
    const auto run = [this](const at::Tensor& x) { return at::tanh(trunk->forward(x)); };
    return recompute ? nn::checkpoint(run, h) : run(h);
  }
  at::Tensor forward(const at::Tensor& x) {
    return head->forward(segment(segment(at::tanh(first->forward(x)))));
  }
  bool recompute;
  torch::nn::Linear first = nullptr;
  torch::nn::Linear trunk = nullptr;
  torch::nn::Linear head = nullptr;
};

at::Tensor rows(int rank, int step) {
  return at::sin(at::arange(6, at::kDouble) + 3 * rank + step).view({2, 3});
}

TEST(Recomputation, GivesTheSameMeansAsWithoutInEveryStep) {
  comm::run_local_ranks(2, [](comm::World& world) {
    auto recomputed = std::make_shared<Recomputed>(true);
    auto kept = std::make_shared<Recomputed>(false);
    const DistributedDataParallelOptions small{.first_bucket_bytes = 8, .bucket_bytes = 8};
    DistributedDataParallel with(recomputed, world, small);
    DistributedDataParallel without(kept, world, small);
    for (int step = 0; step < 4; ++step) {
      recomputed->zero_grad();
      kept->zero_grad();

      with(rows(world.rank(), step)).sum().backward();
      without(rows(world.rank(), step)).sum().backward();

      for (std::size_t i = 0; i < kept->parameters().size(); ++i) {
        const at::Tensor ours = recomputed->parameters()[i].grad();
        const at::Tensor theirs = kept->parameters()[i].grad();
        EXPECT_LT(((ours - theirs).norm() / theirs.norm()).item<double>(), 1e-12) << step;
      }
      EXPECT_TRUE(with.report().unused.empty());
    }
    EXPECT_GT(with.report().early_collectives, 0U) << "what comes whole is still sent early";
  });
}

TEST(Recomputation, OfTheWholeModelAveragesOnce) {
  comm::run_local_ranks(2, [](comm::World& world) {
    auto model = std::make_shared<Recomputed>(false);
    auto kept = std::make_shared<Recomputed>(false);
    DistributedDataParallel parallel(model, world);
    DistributedDataParallel without(kept, world);
    for (int step = 0; step < 3; ++step) {
      model->zero_grad();
      kept->zero_grad();

      const at::Tensor out = nn::checkpoint([&](const at::Tensor& x) { return parallel(x); },
                                            rows(world.rank(), step));
      out.sum().backward();
      without(rows(world.rank(), step)).sum().backward();

      const at::Tensor ours = model->first->weight.grad();
      const at::Tensor theirs = kept->first->weight.grad();
      EXPECT_LT(((ours - theirs).norm() / theirs.norm()).item<double>(), 1e-12) << step;
    }
    EXPECT_EQ(parallel.report().steps, 3U);
  });
}

}  // namespace
}  // namespace yoke::parallel
