#include "yoke/precision/grad_scaler.hpp"

#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "yoke/comm/group.hpp"
#include "yoke/core/error.hpp"
#include "yoke/optim/optim.hpp"

namespace yoke::precision {
namespace {

using Named = std::vector<std::pair<std::string, at::Tensor>>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// One weight, 1 at first, and plain SGD.
struct Scene {
  explicit Scene(const GradScalerOptions& options, double lr = 1)
      : weight(at::ones({1}).set_requires_grad(true)),
        optimizer(Named{{"weight", weight}}, {.lr = lr}),
        scaler(at::kCPU, options) {}

  // A gradient as backward of a scaled loss leaves it.
  void gradient(double value) {
    weight.mutable_grad() = at::full({1}, value * scaler.state().scale, at::kFloat);
  }
  void step(double value) {
    gradient(value);
    scaler.step(optimizer);
    scaler.update();
  }

  at::Tensor weight;
  optim::SGD optimizer;
  GradScaler scaler;
};

GradScalerOptions small() {
  return {.init_scale = 8, .growth_factor = 2, .backoff_factor = 0.5, .growth_interval = 2};
}

TEST(GradScaler, B065ASkippedStepIsNotCountedAndTheScheduleWaits) {
  Scene scene(small());
  std::vector<double> scales;
  std::vector<std::int64_t> growth;
  std::vector<double> rates;
  for (const double gradient : {1.0, 1.0, kInfinity, 1.0, 1.0}) {
    scene.optimizer.set_lr_factor(std::pow(0.5, scene.scaler.steps_taken()));
    rates.push_back(scene.optimizer.lr());
    scene.step(gradient);
    scales.push_back(scene.scaler.state().scale);
    growth.push_back(scene.scaler.state().growth_tracker);
  }

  EXPECT_EQ(scales, (std::vector<double>{8, 16, 8, 8, 16}));
  EXPECT_EQ(growth, (std::vector<std::int64_t>{1, 0, 0, 1, 0}));
  EXPECT_EQ(rates, (std::vector<double>{1, 0.5, 0.25, 0.25, 0.125}));  // the third was skipped
  EXPECT_EQ(scene.scaler.steps_taken(), 4);
  EXPECT_FLOAT_EQ(scene.weight.item<float>(), 1 - (1 + 0.5 + 0.25 + 0.125));
}

TEST(GradScaler, B067ASkippedUnscaleIsForgottenAndASecondOneRefused) {
  Scene scene(small());
  scene.gradient(2);
  scene.scaler.unscale(scene.optimizer);
  EXPECT_FLOAT_EQ(scene.weight.grad().item<float>(), 2);
  scene.scaler.update();  // the caller found the norm too large

  scene.gradient(3);
  scene.scaler.unscale(scene.optimizer);
  EXPECT_THROW(scene.scaler.unscale(scene.optimizer), Error);
  scene.scaler.step(scene.optimizer);

  EXPECT_FLOAT_EQ(scene.weight.grad().item<float>(), 3);  // divided once
  EXPECT_FLOAT_EQ(scene.weight.item<float>(), -2);
  EXPECT_THROW(scene.scaler.step(scene.optimizer), Error);
}

TEST(GradScaler, AnUnscaleThatFoundInfinityDoesNotSpoilTheNextStep) {
  Scene scene(small());
  scene.gradient(kInfinity);
  scene.scaler.unscale(scene.optimizer);
  scene.scaler.update();

  scene.step(1);

  EXPECT_FLOAT_EQ(scene.weight.item<float>(), 0);
  EXPECT_EQ(scene.scaler.state().scale, 8);
}

TEST(GradScaler, B068TheStateComesBackFieldByField) {
  Scene scene({.growth_interval = 500});
  const GradScalerState saved{.scale = 1024,
                              .growth_factor = 2,
                              .backoff_factor = 0.5,
                              .growth_interval = 2,
                              .growth_tracker = 1,
                              .steps_taken = 77,
                              .skips_in_a_row = 0};
  scene.scaler.load(saved);

  const GradScalerState loaded = scene.scaler.state();
  EXPECT_EQ(loaded.scale, saved.scale);
  EXPECT_EQ(loaded.growth_factor, saved.growth_factor);
  EXPECT_EQ(loaded.backoff_factor, saved.backoff_factor);
  EXPECT_EQ(loaded.growth_interval, saved.growth_interval);
  EXPECT_EQ(loaded.growth_tracker, saved.growth_tracker);
  EXPECT_EQ(loaded.steps_taken, saved.steps_taken);
  scene.step(1);
  EXPECT_EQ(scene.scaler.state().scale, 2048);
  EXPECT_EQ(scene.scaler.state().growth_tracker, 0);
}

TEST(GradScaler, B069TheScaleStaysWithinItsLimits) {
  Scene falling({.init_scale = 65536});
  for (int i = 0; i < 30; ++i) falling.step(kInfinity);
  EXPECT_EQ(falling.scaler.state().scale, 1);
  EXPECT_EQ(falling.scaler.state().skips_in_a_row, 30);
  EXPECT_FLOAT_EQ(falling.weight.item<float>(), 1);

  Scene rising({.growth_interval = 1});
  for (int i = 0; i < 200; ++i) rising.step(1e-6);
  EXPECT_EQ(rising.scaler.state().scale, 16777216);
}

TEST(GradScaler, B069TwentySkipsInARowAreAnErrorThatNamesTheParameter) {
  Scene scene({});
  for (int i = 0; i < 19; ++i) scene.step(kInfinity);
  EXPECT_NO_THROW(scene.scaler.check(scene.optimizer));
  scene.step(kInfinity);

  try {
    scene.scaler.check(scene.optimizer);
    FAIL() << "passed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::corrupt_data);
    EXPECT_NE(error.message().find("20 steps in a row"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("parameter 0 of 1"), std::string::npos) << error.message();
  }
}

TEST(GradScaler, B076WhatFloat16FlushesToZeroSurvives) {
  const at::Tensor weight = at::ones({1}, at::kHalf).set_requires_grad(true);
  const auto gradient = [&](double scale) {
    weight.mutable_grad() = at::Tensor();
    (weight.to(at::kFloat) * (1e-8 * scale)).sum().backward();
    return weight.grad().to(at::kDouble).item<double>() / scale;
  };

  EXPECT_EQ(gradient(1), 0);
  EXPECT_NEAR(gradient(65536), 1e-8, 5e-10);
}

TEST(GradScaler, ASkippedFirstStepLeavesNoMomentumBehind) {
  const at::Tensor weight = at::ones({3}).set_requires_grad(true);
  optim::SGD optimizer(Named{{"weight", weight}}, {.lr = 1, .momentum = 0.9});
  GradScaler scaler(at::kCPU, small());
  for (const double value : {kInfinity, 1.0}) {
    weight.mutable_grad() = at::full({3}, value * scaler.state().scale, at::kFloat);
    scaler.step(optimizer);
    scaler.update();
  }

  EXPECT_TRUE(weight.detach().equal(at::zeros({3})));
}

TEST(GradScaler, AdamWDoesNotCountASkippedStep) {
  const auto run = [](const std::vector<double>& gradients) {
    const at::Tensor weight = at::ones({3}).set_requires_grad(true);
    optim::AdamW optimizer(Named{{"weight", weight}}, {.lr = 0.1});
    GradScaler scaler(at::kCPU, small());
    for (const double value : gradients) {
      weight.mutable_grad() = at::full({3}, value * scaler.state().scale, at::kFloat);
      scaler.step(optimizer);
      scaler.update();
    }
    return weight.detach().clone();
  };

  EXPECT_TRUE(run({1, kInfinity, 2}).equal(run({1, 2})));
}

TEST(GradScaler, WhereRanksHaveGradientsOfTheirOwnAllSkip) {
  auto groups = comm::local_groups(2);
  std::vector<double> weights(2);
  std::vector<std::jthread> ranks;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      GradScalerOptions options = small();
      options.group = groups[rank].get();
      Scene scene(options);
      scene.step(rank == 0 ? kInfinity : 1);
      weights[rank] = scene.weight.item<double>();
    });
  }
  ranks.clear();

  EXPECT_EQ(weights, (std::vector<double>{1, 1}));
}

TEST(GradScaler, OptionsThatDoNotFitTogetherAreRefused) {
  for (const GradScalerOptions& options : std::vector<GradScalerOptions>{{.init_scale = 0},
                                                                         {.growth_factor = 1},
                                                                         {.backoff_factor = 1},
                                                                         {.growth_interval = 0}}) {
    EXPECT_THROW(GradScaler(at::kCPU, options), Error);
  }
}

}  // namespace
}  // namespace yoke::precision
