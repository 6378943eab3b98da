#include <vector>

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include "yoke/nn/cast_together.hpp"

namespace yoke::nn {
namespace {

using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;

/// Autocast to bfloat16 while it lives.
class Low {
 public:
  Low() {
    at::autocast::set_autocast_enabled(at::kCUDA, true);
    at::autocast::set_autocast_dtype(at::kCUDA, at::kBFloat16);
  }
  ~Low() {
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCUDA, false);
  }
};

struct Layers {
  Conv2d first{Conv2dOptions(3, 16, 3).padding(1)};
  Conv2d second{Conv2dOptions(16, 8, 1).bias(false)};
  torch::nn::Linear last{8, 4};

  Layers() {
    first->to(at::kCUDA);
    second->to(at::kCUDA);
    last->to(at::kCUDA);
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = convolve(*second, at::relu(convolve(*first, x)));
    return multiply(*last, y.mean({2, 3}));
  }
  [[nodiscard]] std::vector<at::Tensor> weights() const {
    return {first->weight, first->bias, second->weight, last->weight, last->bias};
  }
};

// The output, then the gradients.
std::vector<at::Tensor> outcome(Layers& layers, bool together) {
  const at::Tensor x = at::sin(at::arange(2 * 3 * 8 * 8, at::kCUDA)).view({2, 3, 8, 8});
  for (const at::Tensor& weight : layers.weights()) weight.mutable_grad() = at::Tensor();
  at::Tensor y;
  {
    const Low low;
    if (together) {
      const CastTogether casts(layers.weights());
      EXPECT_EQ(cast_of(layers.first->weight).scalar_type(), at::kBFloat16);
      y = layers.forward(x);
    } else {
      y = layers.forward(x);
    }
  }
  y.to(at::kFloat).square().sum().backward();
  std::vector<at::Tensor> out{y.detach()};
  for (const at::Tensor& weight : layers.weights()) out.push_back(weight.grad().clone());
  return out;
}

TEST(CastTogether, GivesAutocastsValuesAndGradientsBitForBit) {
  Layers layers;
  const std::vector<at::Tensor> apart = outcome(layers, false);
  const std::vector<at::Tensor> together = outcome(layers, true);

  ASSERT_EQ(apart.size(), together.size());
  for (std::size_t i = 0; i < apart.size(); ++i) {
    EXPECT_EQ(together[i].scalar_type(), apart[i].scalar_type()) << i;
    EXPECT_TRUE(together[i].equal(apart[i])) << i;
  }
}

TEST(CastTogether, IsNothingWithoutAutocastAndEndsWithItsScope) {
  Layers layers;
  {
    const CastTogether casts(layers.weights());
    EXPECT_TRUE(cast_of(layers.first->weight).is_same(layers.first->weight));
  }
  {
    const Low low;
    const CastTogether casts(layers.weights());
  }
  EXPECT_TRUE(cast_of(layers.first->weight).is_same(layers.first->weight));
}

TEST(CastTogether, AFrozenWeightIsCastAndGetsNoGradient) {
  Layers layers;
  layers.first->weight.set_requires_grad(false);
  const at::Tensor x = at::ones({1, 3, 4, 4}, at::kCUDA);
  at::Tensor y;
  {
    const Low low;
    const CastTogether casts(layers.weights());
    y = layers.forward(x);
  }
  y.sum().backward();

  EXPECT_FALSE(layers.first->weight.grad().defined());
  EXPECT_TRUE(layers.second->weight.grad().defined());
}

}  // namespace
}  // namespace yoke::nn
