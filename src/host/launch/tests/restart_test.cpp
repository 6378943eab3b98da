#include "yoke/launch/restart.hpp"

#include <chrono>
#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace yoke::launch {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const RestartPolicy::Time kStart{};

Outcome failed(int rank, int exit_code, std::string message = {}) {
  Outcome outcome{.exit_code = 1};
  outcome.root_cause = Failure{.rank = rank, .exit_code = exit_code, .message = std::move(message)};
  return outcome;
}

Outcome failed_at_step(std::uint64_t step) {
  Outcome outcome = failed(0, 1);
  outcome.furthest_step = step;
  return outcome;
}

TEST(RestartPolicy, B032ALimitOfOneIsTwoAttemptsInAll) {
  RestartPolicy policy({.limit = 1});

  EXPECT_TRUE(policy.after(failed(0, 7), kStart).again);
  const auto second = policy.after(failed(0, 7), kStart);

  EXPECT_FALSE(second.again);
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.why, HasSubstr("--max-restarts 1"));
}

TEST(RestartPolicy, B032ALimitOfZeroIsNoSecondAttempt) {
  RestartPolicy policy({.limit = 0});

  EXPECT_FALSE(policy.after(failed(0, 7), kStart).again);
}

TEST(RestartPolicy, AWindowForgetsOldRestarts) {
  RestartPolicy policy({.limit = 1, .window = 60s, .without_progress = 0});

  EXPECT_TRUE(policy.after(failed(0, 7), kStart).again);
  EXPECT_FALSE(RestartPolicy(policy).after(failed(0, 7), kStart + 59s).again);
  EXPECT_TRUE(policy.after(failed(0, 7), kStart + 61s).again);
}

TEST(RestartPolicy, WhatWouldEndSoAgainIsNotStartedAgain) {
  for (const int code : {2, 3, 4}) {
    RestartPolicy policy({.limit = 5});
    Outcome outcome = failed(0, code);
    outcome.exit_code = code;

    EXPECT_FALSE(policy.after(outcome, kStart).again) << code;
  }
}

TEST(RestartPolicy, AStopBySignalOrAGoodEndIsNotStartedAgain) {
  RestartPolicy policy({.limit = 5});

  const auto stopped = policy.after({.exit_code = 128 + SIGTERM}, kStart);

  EXPECT_FALSE(stopped.again);
  EXPECT_EQ(stopped.exit_code, 128 + SIGTERM);
  EXPECT_FALSE(policy.after({.exit_code = 0}, kStart).again);
}

TEST(RestartPolicy, NoProgressIsExitCodeFour) {
  RestartPolicy policy({.limit = 100, .without_progress = 3});

  EXPECT_TRUE(policy.after(failed_at_step(10), kStart).again);
  EXPECT_TRUE(policy.after(failed_at_step(12), kStart).again);
  EXPECT_TRUE(policy.after(failed_at_step(12), kStart).again);
  const auto third = policy.after(failed_at_step(11), kStart);

  EXPECT_FALSE(third.again);
  EXPECT_EQ(third.exit_code, 4);
  EXPECT_THAT(third.why, HasSubstr("3 attempts in a row came no further beyond step 12"));
}

TEST(RestartPolicy, ProgressKeepsAJobGoing) {
  RestartPolicy policy({.limit = 100, .without_progress = 2});

  for (std::uint64_t step = 1; step < 50; ++step)
    ASSERT_TRUE(policy.after(failed_at_step(step), kStart).again) << step;
}

TEST(RestartPolicy, WithoutTelemetryTheSameWordsOfTheSameRankAreNoProgress) {
  RestartPolicy same({.limit = 100, .without_progress = 3});
  RestartPolicy silent({.limit = 100, .without_progress = 3});

  EXPECT_TRUE(same.after(failed(1, 1, "bad label"), kStart).again);
  EXPECT_TRUE(same.after(failed(1, 1, "bad label"), kStart).again);
  EXPECT_EQ(same.after(failed(1, 1, "bad label"), kStart).exit_code, 4);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(silent.after(failed(1, 7), kStart).again);
}

}  // namespace
}  // namespace yoke::launch
