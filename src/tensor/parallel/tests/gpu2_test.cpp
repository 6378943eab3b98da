// DataParallel over two cards against the module alone.

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "yoke/parallel/data_parallel.hpp"

namespace yoke::parallel {
namespace {

struct Net : torch::nn::Cloneable<Net> {
  Net() { reset(); }  // NOLINT: Cloneable's protocol
  void reset() override {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 16, 3)));
    out = register_module("out", torch::nn::Linear(16 * 30 * 30, 10));
  }
  at::Tensor forward(const at::Tensor& x) {
    return out->forward(at::relu(conv->forward(x)).flatten(1));
  }
  torch::nn::Conv2d conv = nullptr;
  torch::nn::Linear out = nullptr;
};

const at::Device kFirst{at::kCUDA, 0};

at::Tensor images(std::int64_t rows, int step) {
  return at::sin(at::arange(rows * 3 * 32 * 32, at::kFloat) + step)
      .view({rows, 3, 32, 32})
      .to(kFirst);
}

void sgd_step(Net& net) {
  const at::NoGradGuard no_grad;
  for (at::Tensor& parameter : net.parameters()) {
    parameter.sub_(parameter.grad(), 1e-4);
    parameter.mutable_grad() = at::Tensor();
  }
}

class TwoCards : public ::testing::TestWithParam<int> {};  // the output device

TEST_P(TwoCards, TrainAsTheModuleAloneOnTheJoinedBatch) {
  auto model = std::make_shared<Net>();
  model->to(kFirst);
  auto alone = std::dynamic_pointer_cast<Net>(model->clone());
  DataParallel parallel(model, {.device_ids = {0, 1}, .output_device = GetParam()});
  for (int step = 0; step < 20; ++step) {
    const at::Tensor batch = images(step == 19 ? 7 : 16, step);
    parallel(batch).square().mean().backward();
    alone->forward(batch).square().mean().backward();
    sgd_step(*model);
    sgd_step(*alone);
  }
  for (std::size_t i = 0; i < model->parameters().size(); ++i) {
    const at::Tensor ours = model->parameters()[i];
    const at::Tensor theirs = alone->parameters()[i];
    EXPECT_LT(((ours - theirs).norm() / theirs.norm()).item<double>(), 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Outputs, TwoCards, ::testing::Values(0, 1));

TEST(TwoCardsReport, ShowsMemoryOfBoth) {
  auto model = std::make_shared<Net>();
  model->to(kFirst);
  DataParallel parallel(model, {.device_ids = {0, 1}});
  parallel(images(16, 0)).sum().backward();

  const auto report = parallel.report();

  ASSERT_EQ(report.replicas.size(), 2U);
  EXPECT_GT(report.replicas[0].memory_allocated, 0U);
  EXPECT_GT(report.replicas[1].memory_allocated, 0U);
}

}  // namespace
}  // namespace yoke::parallel
