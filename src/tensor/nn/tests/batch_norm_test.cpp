#include "yoke/nn/batch_norm.hpp"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include "yoke/core/error.hpp"
#include "yoke/nn/pooling.hpp"

namespace yoke::nn {
namespace {

BatchNorm2dOptions ending_block(std::int64_t channels) {
  return {.num_features = channels, .activation = Activation::relu, .residual = true};
}

TEST(BatchNorm2d, HasTorchsNamesShapesAndStart) {
  const BatchNorm2d ours(5);
  const torch::nn::BatchNorm2d torchs(5);

  const auto compare = [](const auto& mine, const auto& theirs) {
    ASSERT_EQ(mine.keys(), theirs.keys());
    for (const auto& item : theirs) {
      EXPECT_TRUE(mine[item.key()].equal(item.value())) << item.key();
      EXPECT_EQ(mine[item.key()].scalar_type(), item.value().scalar_type()) << item.key();
    }
  };
  compare(ours->named_parameters(), torchs->named_parameters());
  compare(ours->named_buffers(), torchs->named_buffers());
}

TEST(BatchNorm2d, OnTheCpuItIsNormAddAndRelu) {
  at::manual_seed(3);
  BatchNorm2d ours(ending_block(6));
  torch::nn::BatchNorm2d torchs(6);
  for (const bool training : {true, true, false}) {
    ours->train(training);
    torchs->train(training);
    const at::Tensor x = at::randn({4, 6, 5, 5});
    const at::Tensor residual = at::randn({4, 6, 5, 5});
    const at::Tensor a = x.clone().set_requires_grad(true);
    const at::Tensor b = x.clone().set_requires_grad(true);
    const at::Tensor expected = (torchs(b) + residual).relu();

    const at::Tensor y = ours->forward(a, residual);
    y.square().sum().backward();
    expected.square().sum().backward();

    EXPECT_TRUE(y.equal(expected));
    EXPECT_TRUE(a.grad().equal(b.grad()));
    EXPECT_TRUE(ours->weight.grad().equal(torchs->weight.grad()));
    EXPECT_TRUE(ours->running_mean.equal(torchs->running_mean));
    EXPECT_TRUE(ours->running_var.equal(torchs->running_var));
    EXPECT_TRUE(ours->num_batches_tracked.equal(torchs->num_batches_tracked));
  }
}

TEST(BatchNorm2d, TheResidualsGradientIsWhatPassedTheRelu) {
  BatchNorm2d norm(ending_block(2));
  const at::Tensor x = at::randn({3, 2, 4, 4});
  const at::Tensor residual = at::randn({3, 2, 4, 4}).set_requires_grad(true);

  const at::Tensor y = norm->forward(x, residual);
  y.sum().backward();

  EXPECT_TRUE(residual.grad().equal((y.detach() > 0).to(at::kFloat)));
}

TEST(BatchNorm2d, StandsInASequentialAndIsCloned) {
  torch::nn::Sequential layers(
      torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 1)),
      BatchNorm2d(BatchNorm2dOptions{.num_features = 4, .activation = Activation::relu}));
  const at::Tensor x = at::randn({2, 3, 4, 4});

  const auto copy = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(layers->clone());

  ASSERT_TRUE(copy);
  EXPECT_TRUE(layers->forward(x).equal(copy->forward(x)));
  EXPECT_GE(layers->forward(x).min().item<float>(), 0);
}

TEST(BatchNorm2d, AResidualThatWasNotAnnouncedIsRefusedAndSoIsAMissingOne) {
  const at::Tensor x = at::randn({2, 3, 4, 4});
  BatchNorm2d plain(3);
  BatchNorm2d adding(ending_block(3));

  EXPECT_THROW(plain->forward(x, x), Error);
  EXPECT_THROW(adding->forward(x), Error);
  EXPECT_THROW(BatchNorm2d(0), Error);
}

TEST(MaxPool2d, OnTheCpuItIsTorchs) {
  const at::Tensor x = at::randn({2, 3, 9, 9}).set_requires_grad(true);

  EXPECT_TRUE(max_pool2d(x, {.kernel_size = 3, .stride = 2, .padding = 1})
                  .equal(at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1})));
}

}  // namespace
}  // namespace yoke::nn
