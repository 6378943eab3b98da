#pragma once

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job_processes.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/core/telemetry.hpp"
#include "yoke/core/text.hpp"
#include "yoke/launch/supervise.hpp"

namespace yoke::launch {

/// supervise() in this process, with its words kept.
class SuperviseScene : public ::testing::Test {
 protected:
  void SetUp() override {
    console_ = std::make_shared<core::RecordingConsole>();
    before_ = core::attach(console_);
    job_ = core::text("test-", ::getpid(), "-",
                      ::testing::UnitTest::GetInstance()->current_test_info()->name());
  }
  void TearDown() override {
    core::attach(before_);
    EXPECT_THAT(processes_of_job(job_), ::testing::IsEmpty());
  }

  /// One script for each rank; docs in rank_actor.cpp.
  Outcome play(const std::vector<std::string>& scripts, LaunchOptions options = {}) {
    options.command = {YOKE_RANK_ACTOR};
    options.command.insert(options.command.end(), scripts.begin(), scripts.end());
    options.ranks = static_cast<int>(scripts.size());
    options.job_id = job_;
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = supervise(options);
    took_ = std::chrono::steady_clock::now() - begin;
    return outcome;
  }

  /// The folder of the job's telemetry.
  [[nodiscard]] std::filesystem::path records() const {
    return core::telemetry_file(core::telemetry_root(core::environment()), job_, 0).parent_path();
  }

  [[nodiscard]] std::string last_line() const {
    const auto lines = console_->lines();
    return lines.empty() ? "" : lines.back();
  }

  [[nodiscard]] std::string words() const { return core::joined(console_->lines(), "\n"); }

  std::shared_ptr<core::RecordingConsole> console_;
  std::shared_ptr<core::Console> before_;
  std::string job_;
  std::chrono::steady_clock::duration took_{};
};

}  // namespace yoke::launch
