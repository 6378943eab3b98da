#include "yoke/optim/sgd.hpp"

#include <gtest/gtest.h>

#include "yoke/core/error.hpp"

namespace yoke::optim {
namespace {

at::Tensor parameter(std::vector<double> values) {
  return torch::tensor(values, torch::kDouble).set_requires_grad(true);
}

void give_gradient(at::Tensor& value, double gradient) {
  value.mutable_grad() = torch::full_like(value, gradient).detach();
}

// PyTorch's definition, for one number over the gradients of successive steps.
double by_hand(double value, const std::vector<double>& gradients, const SGDOptions& options) {
  double momentum = 0;
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    double g = (options.maximize ? -1 : 1) * gradients[k] + options.weight_decay * value;
    if (options.momentum != 0) {
      momentum = k == 0 ? g : options.momentum * momentum + (1 - options.dampening) * g;
      g = options.nesterov ? g + options.momentum * momentum : momentum;
    }
    value -= options.lr * g;
  }
  return value;
}

TEST(Sgd, FollowsItsFormulaForEveryOption) {
  const std::vector<double> gradients{0.5, -1.0, 2.0};
  const std::vector<SGDOptions> all{
      {.lr = 0.1},
      {.lr = 0.1, .weight_decay = 0.01},
      {.lr = 0.1, .momentum = 0.9},
      {.lr = 0.1, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.01},
      {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true},
      {.lr = 0.1, .momentum = 0.9, .maximize = true},
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    at::Tensor value = parameter({1.0, -2.0, 0.0});
    SGD optimizer(std::vector{value}, all[i]);

    for (const double gradient : gradients) {
      give_gradient(value, gradient);
      optimizer.step();
    }

    for (const auto& [at, start] : {std::pair{0, 1.0}, {1, -2.0}, {2, 0.0}}) {
      const double expected = by_hand(start, gradients, all[i]);
      EXPECT_NEAR(value[at].item<double>(), expected, 1e-12) << "options " << i;
    }
  }
}

TEST(Sgd, ParametersThatAreNotDenseOrNotRealAreSteppedAlike) {
  const SGDOptions options{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true};
  const std::vector<double> gradients{0.5, -1.0};
  at::Tensor strided = torch::ones({4, 6}, torch::kDouble).slice(1, 0, 6, 2).detach();
  strided.set_requires_grad(true);
  at::Tensor complex = torch::ones({3}, torch::kComplexDouble).set_requires_grad(true);
  at::Tensor dense = parameter({1.0});
  SGD optimizer(std::vector{strided, complex, dense}, options);

  for (const double gradient : gradients) {
    for (at::Tensor* value : {&strided, &complex, &dense}) give_gradient(*value, gradient);
    optimizer.step();
  }

  const double expected = by_hand(1.0, gradients, options);
  EXPECT_TRUE(torch::allclose(strided, torch::full_like(strided, expected), 1e-12, 0));
  EXPECT_TRUE(torch::allclose(complex, torch::full_like(complex, expected), 1e-12, 0));
  EXPECT_NEAR(dense.item<double>(), expected, 1e-12);
}

TEST(Sgd, B006ParameterWithoutGradientIsLeftAlone) {
  at::Tensor used = parameter({1.0});
  at::Tensor unused = parameter({1.0});
  SGD optimizer(std::vector{used, unused}, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1});
  give_gradient(used, 1.0);

  optimizer.step();

  EXPECT_EQ(unused.item<double>(), 1.0);
  EXPECT_FALSE(unused.grad().defined());
  EXPECT_EQ(optimizer.state_dict().state.count(1), 0U);
  EXPECT_NEAR(used.item<double>(), 1.0 - 0.1 * (1.0 + 0.1), 1e-12);
}

TEST(Sgd, MomentumOfAParameterBeginsWithItsOwnFirstGradient) {
  const SGDOptions options{.lr = 0.1, .momentum = 0.9, .dampening = 0.5};
  at::Tensor early = parameter({1.0});
  at::Tensor late = parameter({1.0});
  SGD optimizer(std::vector{early, late}, options);
  give_gradient(early, 1.0);
  optimizer.step();

  give_gradient(late, 2.0);
  optimizer.step();

  EXPECT_NEAR(early.item<double>(), by_hand(1.0, {1.0, 1.0}, options), 1e-12);
  EXPECT_NEAR(late.item<double>(), by_hand(1.0, {2.0}, options), 1e-12);
}

TEST(Sgd, EachGroupHasItsOwnSettingsAndFactorOfItsOwnRate) {
  at::Tensor body = parameter({1.0});
  at::Tensor head = parameter({1.0});
  SGD optimizer(std::vector{body}, {.lr = 0.1});
  optimizer.add_param_group(std::vector{head}, {.lr = 1.0, .weight_decay = 0.5});
  give_gradient(body, 1.0);
  give_gradient(head, 1.0);

  optimizer.set_lr_factor(0.5);
  optimizer.step();

  EXPECT_DOUBLE_EQ(optimizer.lr(1), 0.5);
  EXPECT_NEAR(body.item<double>(), 1.0 - 0.05, 1e-12);
  EXPECT_NEAR(head.item<double>(), 1.0 - 0.5 * 1.5, 1e-12);
}

TEST(Sgd, DtypesMayBeMixedInOneGroup) {
  at::Tensor wide = parameter({1.0});
  at::Tensor narrow = torch::ones({1}, torch::kBFloat16).set_requires_grad(true);
  SGD optimizer(std::vector{wide, narrow}, {.lr = 0.5});
  give_gradient(wide, 1.0);
  give_gradient(narrow, 1.0);

  optimizer.step();

  EXPECT_DOUBLE_EQ(wide.item<double>(), 0.5);
  EXPECT_DOUBLE_EQ(narrow.item<double>(), 0.5);
}

TEST(Sgd, OptionsOutsideTheirRangeAreRefused) {
  const std::vector<at::Tensor> one{parameter({1.0})};

  EXPECT_THROW(SGD(one, {.lr = -1}), Error);
  EXPECT_THROW(SGD(one, {.momentum = -0.1}), Error);
  EXPECT_THROW(SGD(one, {.weight_decay = -0.1}), Error);
  EXPECT_THROW(SGD(one, {.nesterov = true}), Error);
  EXPECT_THROW(SGD(one, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}), Error);
}

TEST(Sgd, AParameterTwiceOrNoLeafIsRefused) {
  const at::Tensor value = parameter({1.0});

  EXPECT_THROW(SGD(std::vector{value, value}), Error);
  EXPECT_THROW(SGD(std::vector{value * 2}), Error);
  EXPECT_THROW(SGD(std::vector{at::Tensor()}), Error);
}

}  // namespace
}  // namespace yoke::optim
