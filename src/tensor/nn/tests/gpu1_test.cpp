#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include "yoke/nn/checkpoint.hpp"

namespace yoke::nn {
namespace {

TEST(CheckpointGpu, DropoutOnTheCardIsTheSameUnderAutocastToo) {
  torch::nn::Linear layer(64, 64);
  layer->to(at::kCUDA);
  const at::Tensor values = torch::randn({32, 64}, at::kCUDA);
  const auto forward = [&](const at::Tensor& x) {
    return at::dropout(layer->forward(x), 0.5, /*train=*/true);
  };
  const auto gradients = [&](const auto& run) {
    layer->zero_grad();
    const at::Tensor x = values.detach().clone().set_requires_grad(true);
    torch::manual_seed(7);
    at::autocast::set_autocast_enabled(at::kCUDA, true);
    const at::Tensor y = run(x);
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCUDA, false);
    torch::rand({8}, at::kCUDA);  // moves the generator on before backward
    y.to(at::kFloat).pow(2).sum().backward();
    return std::vector<at::Tensor>{y.detach(), x.grad(), layer->weight.grad().clone()};
  };

  const auto plain = gradients(forward);
  const auto kept = gradients([&](const at::Tensor& x) { return checkpoint(forward, x); });

  EXPECT_EQ(kept[0].scalar_type(), at::kHalf);
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(plain[i].equal(kept[i])) << i;
}

}  // namespace
}  // namespace yoke::nn
