// A captured step against the same step run eagerly.

#include <memory>
#include <optional>
#include <vector>

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "toys.hpp"
#include "yoke/comm/world.hpp"
#include "yoke/optim/optim.hpp"
#include "yoke/parallel/distributed_data_parallel.hpp"
#include "yoke/train/step.hpp"
#include "yoke/train/trainer.hpp"

namespace yoke::train {
namespace {

using Named = std::vector<std::pair<std::string, at::Tensor>>;
using Tensors = Step::Tensors;

struct Net : torch::nn::Cloneable<Net> {
  Net() { Net::reset(); }
  void reset() override {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 16, 3)));
    out = register_module("out", torch::nn::Linear(16 * 6 * 6, 10));
  }
  at::Tensor forward(const at::Tensor& x) {
    return out->forward(at::relu(conv->forward(x)).flatten(1));
  }
  torch::nn::Conv2d conv = nullptr;
  torch::nn::Linear out = nullptr;
};

Tensors batch_of(std::int64_t rows, int number) {
  const at::Tensor x =
      at::sin(at::arange(rows * 3 * 8 * 8, at::kFloat) + number).view({rows, 3, 8, 8});
  return {x.to(at::kCUDA), at::arange(rows).add(number).remainder(10).to(at::kCUDA)};
}

// The losses of `steps` steps whose rate changes, in one of the ways.
std::vector<double> losses(comm::World& world, bool capture, bool ddp,
                           precision::Precision precision, int steps = 12) {
  at::manual_seed(7);
  auto model = std::make_shared<Net>();
  model->to(world.device());
  std::optional<DistributedDataParallel<std::shared_ptr<Net>>> parallel;
  if (ddp) parallel.emplace(model, world);
  optim::SGD optimizer(model->named_parameters(), {.lr = 0.1, .momentum = 0.9});
  Step step(
      [&](const Tensors& batch) {
        const at::Tensor scores = ddp ? (*parallel)(batch[0]) : model->forward(batch[0]);
        return at::cross_entropy_loss(scores, batch[1]);
      },
      optimizer, world, {.precision = precision, .capture = capture, .clip_norm = 1});
  std::vector<double> values;
  for (int i = 0; i < steps; ++i) {
    optimizer.set_lr_factor(1.0 / (1 + i));
    values.push_back(step(batch_of(i % 5 == 4 ? 3 : 4, i)).item<double>());
  }
  EXPECT_EQ(step.obstacle(), "");
  EXPECT_EQ(step.replays() > 0, capture);
  return values;
}

void expect_close(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << "step " << i;
}

TEST(CapturedStep, GivesTheLossesOfTheEagerOneWithAndWithoutDdp) {
  comm::World world = comm::World::join({.backend = "nccl"});
  for (const auto precision :
       {precision::Precision::fp32, precision::Precision::bf16, precision::Precision::fp16}) {
    const double tolerance = precision == precision::Precision::fp32 ? 1e-4 : 3e-2;
    const std::vector<double> eager = losses(world, false, false, precision);

    expect_close(losses(world, true, false, precision), eager, tolerance);
    expect_close(losses(world, true, true, precision), eager, tolerance);
  }
}

TEST(CapturedStep, AStepThatReadsFromTheCardGoesOnEagerlyAndSaysWhy) {
  comm::World world = comm::World::join({.backend = "nccl"});
  const at::Tensor weight = at::ones({4}, at::kCUDA).set_requires_grad(true);
  optim::SGD optimizer(Named{{"weight", weight}}, {.lr = 0.5});
  Step step(
      [&](const Tensors& batch) {
        const at::Tensor loss = (weight * batch[0]).sum();
        (void)loss.item<double>();
        return loss;
      },
      optimizer, world);
  for (int i = 0; i < 6; ++i) step({at::ones({4}, at::kCUDA)});

  EXPECT_NE(step.obstacle(), "");
  EXPECT_EQ(step.replays(), 0U);
  EXPECT_TRUE(at::allclose(weight.detach(), at::full({4}, 1 - 6 * 0.5, at::kCUDA)));
  EXPECT_NO_THROW(at::rand({4}, at::kCUDA).sum().item<double>());  // the generator is whole
}

TEST(CapturedStep, MasksDifferFromReplayToReplay) {
  comm::World world = comm::World::join({.backend = "nccl"});
  const at::Tensor weight = at::ones({1000}, at::kCUDA).set_requires_grad(true);
  optim::SGD optimizer(Named{{"weight", weight}}, {.lr = 0});
  Step step([&](const Tensors& batch) { return at::dropout(weight * batch[0], 0.5, true).sum(); },
            optimizer, world);
  std::vector<double> values;
  for (int i = 0; i < 8; ++i) values.push_back(step({at::ones({1000}, at::kCUDA)}).item<double>());

  EXPECT_GT(step.replays(), 0U);
  EXPECT_NE(values[6], values[7]);
  EXPECT_NE(values[5], values[6]);
}

TEST(CapturedTrainer, TrainsAsTheEagerOneOnAShortLastBatchToo) {
  comm::World world = comm::World::join({.backend = "nccl"});
  const auto loss = [&](bool capture) {
    auto model = std::make_shared<toys::Net>();
    model->to(world.device());
    optim::SGD optimizer(model->named_parameters(), {.lr = 0.1, .momentum = 0.9});
    data::DataLoader loader(toys::points(26), world, toys::batches_of(4));
    Trainer trainer(AnyModule(model), world, {.capture = capture, .epochs = 3});
    return trainer.fit(loader, optimizer).loss;
  };

  EXPECT_NEAR(loss(true), loss(false), 1e-5);  // float32, and other kernels may be chosen
}

}  // namespace
}  // namespace yoke::train
