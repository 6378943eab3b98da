#include "yoke/optim/schedule.hpp"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "yoke/core/error.hpp"
#include "yoke/optim/sgd.hpp"

namespace yoke::optim {
namespace {

TEST(Schedule, B072RateOfAStepDependsOnNeitherRanksNorAccumulation) {
  const Schedule schedule({.shape = Shape::linear, .total_steps = 8});
  for (const int world_size : {1, 2, 4}) {
    for (const int accumulation : {1, 2}) {
      // Each rank runs its own loop; one optimizer step follows `accumulation` micro-batches.
      for (int rank = 0; rank < world_size; ++rank) {
        SGD optimizer(std::vector{torch::ones({1}).set_requires_grad(true)}, {.lr = 1.0});
        std::vector<double> rates;
        for (int micro_batch = 0; micro_batch < 8 * accumulation; ++micro_batch) {
          if ((micro_batch + 1) % accumulation != 0) continue;
          optimizer.set_lr_factor(schedule.factor(static_cast<std::int64_t>(rates.size())));
          rates.push_back(optimizer.lr());
        }

        ASSERT_EQ(rates.size(), 8U);
        for (std::size_t k = 0; k < 8; ++k) {
          EXPECT_DOUBLE_EQ(rates[k], 1 - static_cast<double>(k) / 8) << world_size << accumulation;
        }
      }
    }
  }
}

TEST(Schedule, B073RatesAfterAResumeAreThoseOfTheStraightRun) {
  const ScheduleOptions options{.shape = Shape::step, .step_size = 4, .gamma = 0.1};
  const auto rates = [&](SGD& optimizer, int first, int last) {
    std::vector<double> all;
    for (int epoch = first; epoch < last; ++epoch) {
      optimizer.set_lr_factor(Schedule(options).factor(epoch));
      all.push_back(optimizer.lr());
    }
    return all;
  };
  const std::vector<at::Tensor> parameters{torch::ones({1}).set_requires_grad(true)};
  SGD straight(parameters, {.lr = 100});
  SGD stopped(parameters, {.lr = 100});
  SGD resumed(parameters, {.lr = 1});  // the saved rate wins

  const std::vector<double> expected = rates(straight, 0, 6);
  std::vector<double> pieces = rates(stopped, 0, 2);
  resumed.load_state_dict(stopped.state_dict());
  for (const double rate : rates(resumed, 2, 6)) pieces.push_back(rate);

  EXPECT_EQ(expected, (std::vector<double>{100, 100, 100, 100, 10, 10}));
  EXPECT_EQ(pieces, expected);
}

TEST(Schedule, CosineRunsFromOneToItsEndAndStaysThere) {
  const Schedule schedule({.shape = Shape::cosine, .total_steps = 100, .end_factor = 0.1});

  for (const std::int64_t step : {0, 25, 50, 99, 100}) {
    const double left = (1 + std::cos(std::numbers::pi * static_cast<double>(step) / 100)) / 2;
    EXPECT_NEAR(schedule.factor(step), 0.1 + 0.9 * left, 1e-12) << step;
  }
  EXPECT_DOUBLE_EQ(schedule.factor(1'000'000), 0.1);
}

TEST(Schedule, WarmUpRisesToTheShapeThatFollowsAndEndsWithTheRun) {
  const Schedule schedule(
      {.shape = Shape::linear, .total_steps = 10, .warmup_steps = 4, .warmup_factor = 0.2});

  EXPECT_DOUBLE_EQ(schedule.factor(0), 0.2);
  EXPECT_DOUBLE_EQ(schedule.factor(2), 0.6);
  EXPECT_DOUBLE_EQ(schedule.factor(4), 1);
  EXPECT_DOUBLE_EQ(schedule.factor(7), 0.5);
  EXPECT_DOUBLE_EQ(schedule.factor(10), 0);
}

TEST(Schedule, DropsAreCountedFromTheStartOfTheRunAlsoAfterWarmUp) {
  const Schedule schedule({.shape = Shape::step, .step_size = 30, .warmup_steps = 5});

  EXPECT_DOUBLE_EQ(schedule.factor(5), 1);
  EXPECT_DOUBLE_EQ(schedule.factor(29), 1);
  EXPECT_DOUBLE_EQ(schedule.factor(30), 0.1);
}

TEST(Schedule, ConstantIsOne) {
  const Schedule schedule({});

  EXPECT_EQ(schedule.factor(0), 1);
  EXPECT_EQ(schedule.factor(1'000'000), 1);
}

TEST(Schedule, LengthsAndFactorsThatDoNotFitAreRefused) {
  EXPECT_THROW(Schedule({.shape = Shape::cosine}), Error);
  EXPECT_THROW(Schedule({.shape = Shape::linear, .total_steps = 5, .warmup_steps = 5}), Error);
  EXPECT_THROW(Schedule({.shape = Shape::step}), Error);
  EXPECT_THROW(Schedule({.warmup_steps = -1}), Error);
  EXPECT_THROW(Schedule({.shape = Shape::linear, .total_steps = 5, .end_factor = -1}), Error);
  EXPECT_THROW(Schedule({.warmup_steps = 1, .warmup_factor = std::nan("")}), Error);
}

TEST(Schedule, NamesAreFoundAndSlipsCorrected) {
  for (const std::string& name : shape_names()) EXPECT_NO_THROW((void)shape_from_name(name));
  EXPECT_EQ(shape_from_name("cosine"), Shape::cosine);
  EXPECT_EQ(lr_scaling_from_name("linear"), LrScaling::linear);
  try {
    (void)shape_from_name("cosin");
    FAIL() << "found cosin";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_EQ(error.hint(), "did you mean cosine?");
  }
}

TEST(ScaledLr, GrowsWithTheRanksOnlyByTheLinearRule) {
  EXPECT_DOUBLE_EQ(scaled_lr(0.1, 8, LrScaling::linear), 0.8);
  EXPECT_DOUBLE_EQ(scaled_lr(0.1, 8, LrScaling::none), 0.1);
  EXPECT_THROW((void)scaled_lr(0.1, 0, LrScaling::linear), Error);
}

}  // namespace
}  // namespace yoke::optim
