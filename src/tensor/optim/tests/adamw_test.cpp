#include "yoke/optim/adamw.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "yoke/core/error.hpp"

namespace yoke::optim {
namespace {

void give_gradient(at::Tensor& value, double gradient) {
  value.mutable_grad() = torch::full_like(value, gradient).detach();
}

// PyTorch's definition, for one number over the gradients of successive steps.
double by_hand(double value, const std::vector<double>& gradients, const AdamWOptions& options) {
  const auto [beta1, beta2] = options.betas;
  double mean = 0;
  double square = 0;
  double largest = 0;
  for (std::size_t k = 1; k <= gradients.size(); ++k) {
    const double g = (options.maximize ? -1 : 1) * gradients[k - 1];
    value *= 1 - options.lr * options.weight_decay;
    mean = beta1 * mean + (1 - beta1) * g;
    square = beta2 * square + (1 - beta2) * g * g;
    largest = std::max(largest, square);
    const double scale = (options.amsgrad ? largest : square) / (1 - std::pow(beta2, k));
    value -= options.lr * mean / (1 - std::pow(beta1, k)) / (std::sqrt(scale) + options.eps);
  }
  return value;
}

TEST(AdamW, FollowsItsFormulaForDenseAndStridedParameters) {
  const std::vector<double> gradients{0.5, -1.0, 0.01};
  const std::vector<AdamWOptions> all{
      {.lr = 0.1},
      {.lr = 0.1, .betas = {0.8, 0.9}, .eps = 1e-3, .weight_decay = 0.5},
      {.lr = 0.1, .betas = {0.8, 0.5}, .amsgrad = true},
      {.lr = 0.1, .maximize = true},
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    at::Tensor dense = torch::full({5}, 2.0, torch::kDouble).set_requires_grad(true);
    at::Tensor strided = torch::full({4, 6}, 2.0, torch::kDouble).slice(1, 0, 6, 2).detach();
    strided.set_requires_grad(true);
    AdamW optimizer(std::vector{dense, strided}, all[i]);

    for (const double gradient : gradients) {
      give_gradient(dense, gradient);
      give_gradient(strided, gradient);
      optimizer.step();
    }

    const double expected = by_hand(2.0, gradients, all[i]);
    // 1e-6: the kernels keep the step in float32 and take its powers there
    EXPECT_TRUE(torch::allclose(dense, torch::full_like(dense, expected), 1e-6, 0)) << i;
    EXPECT_TRUE(torch::allclose(strided, torch::full_like(strided, expected), 1e-6, 0)) << i;
  }
}

TEST(AdamW, B006ParameterWithoutGradientKeepsValueAndStepCount) {
  at::Tensor used = torch::ones({1}).set_requires_grad(true);
  at::Tensor sometimes = torch::ones({1}).set_requires_grad(true);
  AdamW optimizer(std::vector{used, sometimes}, {.lr = 0.1, .weight_decay = 0.1});
  give_gradient(used, 1.0);
  give_gradient(sometimes, 1.0);
  optimizer.step();
  const double before = sometimes.item<double>();

  sometimes.mutable_grad().reset();
  optimizer.step();

  const OptimizerState state = optimizer.state_dict();
  EXPECT_EQ(sometimes.item<double>(), before);
  EXPECT_EQ(state.state.at(0)[0].second.item<double>(), 2);
  EXPECT_EQ(state.state.at(1)[0].second.item<double>(), 1);
}

TEST(AdamW, OptionsOutsideTheirRangeAreRefused) {
  const std::vector<at::Tensor> one{torch::ones({1}).set_requires_grad(true)};

  EXPECT_THROW(AdamW(one, {.betas = {1.0, 0.9}}), Error);
  EXPECT_THROW(AdamW(one, {.betas = {0.9, -0.1}}), Error);
  EXPECT_THROW(AdamW(one, {.eps = -1}), Error);
  EXPECT_THROW(AdamW(one, {.weight_decay = -1}), Error);
  EXPECT_THROW(AdamW(one, {.lr = -1}), Error);
}

}  // namespace
}  // namespace yoke::optim
