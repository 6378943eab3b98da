#include "yoke/nn/fuse.hpp"

#include <memory>
#include <vector>

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

namespace yoke::nn {
namespace {

using torch::nn::BatchNorm2d;
using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;

/// Written as a user would, with torch's layers.
struct Block : torch::nn::Module {
  Block(std::int64_t in, std::int64_t out, std::int64_t stride) {
    conv1 = register_module("conv1", Conv2d(Conv2dOptions(in, out, 3).stride(stride).padding(1)));
    bn1 = register_module("bn1", BatchNorm2d(out));
    conv2 = register_module("conv2", Conv2d(Conv2dOptions(out, out, 3).padding(1).bias(false)));
    bn2 = register_module("bn2", BatchNorm2d(out));
    if (in == out) return;
    side = register_module("side", Conv2d(Conv2dOptions(in, out, 1).stride(stride)));
    side_bn = register_module("side_bn", BatchNorm2d(out));
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = at::relu(bn1->forward(conv1->forward(x)));
    y = bn2->forward(conv2->forward(y));
    y += side.is_empty() ? x : side_bn->forward(side->forward(x));
    return at::relu(y);
  }
  Conv2d conv1 = nullptr, conv2 = nullptr, side = nullptr;
  BatchNorm2d bn1 = nullptr, bn2 = nullptr, side_bn = nullptr;
};

struct Net : torch::nn::Module {
  Net() {
    conv = register_module("conv", Conv2d(Conv2dOptions(3, 8, 7).stride(2).padding(3).bias(false)));
    bn = register_module("bn", BatchNorm2d(8));
    first = register_module("first", std::make_shared<Block>(8, 8, 1));
    second = register_module("second", std::make_shared<Block>(8, 16, 2));
    out = register_module("out", torch::nn::Linear(16, 5));
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = bn->forward(conv->forward(x));
    at::relu_(y);
    y = at::max_pool2d(y, {3, 3}, {2, 2}, {1, 1});
    y = second->forward(first->forward(y));
    return out->forward(at::adaptive_avg_pool2d(y, {1, 1}).flatten(1));
  }
  Conv2d conv = nullptr;
  BatchNorm2d bn = nullptr;
  std::shared_ptr<Block> first, second;
  torch::nn::Linear out = nullptr;
};

std::shared_ptr<Net> make() {
  at::manual_seed(5);
  auto net = std::make_shared<Net>();
  net->to(at::kDouble);
  return net;
}

at::Tensor images(std::int64_t rows, int number = 0) {
  return at::sin(at::arange(rows * 3 * 16 * 16, at::kDouble) + number).view({rows, 3, 16, 16});
}

void expect_same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(at::allclose(a[i], b[i], 1e-9, 1e-10)) << i;
}

std::vector<at::Tensor> gradients(const Net& net) {
  std::vector<at::Tensor> out;
  for (const at::Tensor& parameter : net.parameters()) out.push_back(parameter.grad().clone());
  return out;
}

TEST(Fuse, FindsNormsReluAddsPoolsAndConvolutions) {
  auto net = make();
  const Fused fused = fuse(net, images(4));

  EXPECT_EQ(fused.report().obstacle, "");
  EXPECT_EQ(fused.report().norms_add_relu, 2U);
  EXPECT_EQ(fused.report().norms_relu, 3U);
  EXPECT_EQ(fused.report().norms, 1U);  // of the side path
  EXPECT_EQ(fused.report().pools, 2U);
  EXPECT_EQ(fused.report().convolutions, 6U);
  EXPECT_TRUE(fused.report().left.empty());
}

TEST(Fuse, TrainsAsThePlainForwardDoesOnTheSameParameters) {
  auto plain = make();
  auto net = make();
  Fused fused = fuse(net, images(4));
  for (int step = 0; step < 3; ++step) {
    for (const auto& model : {plain, net}) {
      model->zero_grad();
      const at::Tensor x = images(step == 2 ? 3 : 4, step);  // the last batch is short
      const at::Tensor y = model == net ? fused(x) : model->forward(x);
      y.square().sum().backward();
      const at::NoGradGuard no_grad;
      for (at::Tensor& parameter : model->parameters()) parameter.sub_(parameter.grad(), 1e-3);
    }
    expect_same(gradients(*net), gradients(*plain));
  }
  expect_same(net->parameters(), plain->parameters());
  expect_same(net->buffers(), plain->buffers());
}

TEST(Fuse, LeavesParametersAndBuffersAsTheyWere) {
  auto expected = make();
  auto net = make();
  net->out->bias.set_requires_grad(false);
  const Fused fused = fuse(net, images(4));

  expect_same(net->buffers(), expected->buffers());
  EXPECT_FALSE(net->out->bias.requires_grad());
  EXPECT_TRUE(net->conv->weight.requires_grad());
}

TEST(Fuse, EvaluationRunsTheModulesOwnForward) {
  auto net = make();
  Fused fused = fuse(net, images(4));
  net->eval();

  EXPECT_TRUE(fused(images(2)).equal(net->forward(images(2))));
}

struct Untraceable : torch::nn::Module {
  at::Tensor forward(const at::Tensor&) { throw std::runtime_error("not today"); }
};

TEST(Fuse, AForwardThatCannotBeTracedIsSaidAndRunsAsItIs) {
  auto net = std::make_shared<Untraceable>();
  Fused fused = fuse(net, images(1));

  EXPECT_NE(fused.report().obstacle.find("not today"), std::string::npos);
  EXPECT_THROW(fused(images(1)), std::runtime_error);
}

TEST(Fuse, WeightsThatAreExchangedLaterAreTaken) {
  auto net = make();
  Fused fused = fuse(net, images(2));
  {
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : net->parameters()) parameter.mul_(0.5);
  }
  auto plain = make();
  {
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : plain->parameters()) parameter.mul_(0.5);
  }

  EXPECT_TRUE(at::allclose(fused(images(2)), plain->forward(images(2))));
}

}  // namespace
}  // namespace yoke::nn
