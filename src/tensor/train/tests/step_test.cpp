#include "yoke/train/step.hpp"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "toys.hpp"
#include "yoke/comm/world.hpp"
#include "yoke/core/error.hpp"
#include "yoke/optim/optim.hpp"
#include "yoke/parallel/distributed_data_parallel.hpp"

namespace yoke::train {
namespace {

using Tensors = Step::Tensors;

at::Tensor inputs() { return at::arange(24, at::kDouble).mul(0.7).cos().reshape({8, 3}); }
at::Tensor targets() { return at::arange(8).remainder(4); }

TEST(Step, OnTheCpuItIsTheLoopWrittenOut) {
  comm::World world = comm::World::of(comm::alone_group());
  auto model = std::make_shared<toys::Net>();
  auto by_hand = std::make_shared<toys::Net>();
  DistributedDataParallel parallel(model, world);
  optim::SGD optimizer(model->named_parameters(), {.lr = 0.1, .momentum = 0.9});
  optim::SGD other(by_hand->named_parameters(), {.lr = 0.1, .momentum = 0.9});
  Step step(
      [&](const Tensors& batch) { return at::cross_entropy_loss(parallel(batch[0]), batch[1]); },
      optimizer, world, {.clip_norm = 0.5});
  for (int i = 0; i < 3; ++i) {
    const at::Tensor loss = step({inputs(), targets()});

    other.zero_grad();
    const at::Tensor expected = at::cross_entropy_loss(by_hand->forward(inputs()), targets());
    expected.backward();
    optim::clip_grad_norm_(other.parameters(), 0.5);
    other.step();
    EXPECT_TRUE(loss.equal(expected.detach()));
    EXPECT_FALSE(loss.requires_grad());
  }
  EXPECT_EQ(step.replays(), 0U);
  EXPECT_EQ(step.obstacle(), "");
}

TEST(Step, B076Fp16OnTheCpuIsRefusedBeforeTheFirstStep) {
  comm::World world = comm::World::of(comm::alone_group());
  toys::Net model;
  optim::SGD optimizer(model.named_parameters(), {.lr = 0.1});

  EXPECT_THROW(Step([](const Tensors& batch) { return batch[0]; }, optimizer, world,
                    {.precision = precision::Precision::fp16}),
               Error);
}

TEST(Step, Bf16RunsUnderAutocastAndLeavesWeightsFloat32) {
  comm::World world = comm::World::of(comm::alone_group());
  torch::nn::Linear layer(3, 4);
  optim::SGD optimizer(layer->named_parameters(), {.lr = 0.1});
  at::ScalarType seen = at::kFloat;
  Step step(
      [&](const Tensors& batch) {
        const at::Tensor scores = layer->forward(batch[0]);
        seen = scores.scalar_type();
        return at::cross_entropy_loss(scores, batch[1]);
      },
      optimizer, world, {.precision = precision::Precision::bf16});

  const at::Tensor loss = step({inputs().to(at::kFloat), targets()});

  EXPECT_EQ(seen, at::kBFloat16);
  EXPECT_EQ(layer->weight.scalar_type(), at::kFloat);
  EXPECT_EQ(layer->weight.grad().scalar_type(), at::kFloat);
  EXPECT_GT(loss.item<double>(), 0);
}

}  // namespace
}  // namespace yoke::train
