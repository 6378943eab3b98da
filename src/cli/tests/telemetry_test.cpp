// yoke_telemetry.py, read by the C++ reader and by the launcher's watcher; no torch.

#include "yoke/core/telemetry.hpp"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/environment.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/telemetry_reader.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cli {
namespace {

using namespace std::chrono_literals;
using core::ChildResult;
using ::testing::AllOf;
using ::testing::HasSubstr;

class PythonTelemetry : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() / core::text("yoke-python-", ::getpid());
    variables_ = core::environment();
    variables_["YOKE_TELEMETRY_DIR"] = root_.string();
    variables_["PYTHONPATH"] = YOKE_PYTHON_FOLDER;
    variables_["PYTHONDONTWRITEBYTECODE"] = "1";
    variables_["YOKE_JOB_ID"] = "a/b";
    variables_["RANK"] = "3";
    variables_["WORLD_SIZE"] = "4";
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  [[nodiscard]] ChildResult python(const std::string& code) const {
    return core::run_child(
        {.command = {YOKE_PYTHON, "-c", code}, .variables = variables_, .limit = 60s});
  }

  std::filesystem::path root_;
  core::EnvironmentMap variables_;
};

TEST_F(PythonTelemetry, IsReadAsOurOwnIs) {
  const ChildResult result = python(
      "import os, yoke_telemetry\n"
      "t = yoke_telemetry.start()\n"
      "t.step(41, samples=8)\n"
      "t.step(42, samples=8, epoch=2, loss=0.25)\n"
      "with t.collective('broadcast', nbytes=1024, dtype=6): pass\n"
      "with t.collective('all_gather', group=7): pass\n"
      "t.collective('all_reduce', nbytes=4096).__enter__()\n"
      "t.failed('bad label ü' + 'x' * 2000)\n"
      "os._exit(3)\n");

  ASSERT_EQ(result.exit_code, 3) << result.err;
  const core::TelemetrySnapshot seen =
      core::TelemetryReader(core::telemetry_file(root_, "a/b", 3)).read();
  EXPECT_TRUE(seen.consistent);
  EXPECT_EQ(seen.writer, core::WriterLife::dead);
  EXPECT_EQ(seen.identity.rank, 3);
  EXPECT_EQ(seen.identity.world_size, 4);
  EXPECT_EQ(seen.identity.job, "a/b");
  EXPECT_EQ(seen.last_step.step, 42U);
  EXPECT_EQ(seen.last_step.epoch, 2U);
  EXPECT_EQ(seen.total_samples, 16U);
  EXPECT_EQ(seen.loss, 0.25);
  EXPECT_FALSE(seen.queue_depth);
  ASSERT_EQ(seen.collectives.size(), 3U);
  EXPECT_EQ(seen.collectives[0].facts.kind, core::CollectiveKind::broadcast);
  EXPECT_EQ(seen.collectives[0].facts.dtype, 6U);
  EXPECT_TRUE(seen.collectives[0].ended);
  EXPECT_EQ(seen.collectives[1].facts.group, 7U);
  EXPECT_EQ(seen.collectives[1].facts.sequence, 0U);  // each group counts its own
  EXPECT_EQ(seen.collectives[2].facts.bytes, 4096U);
  EXPECT_EQ(seen.collectives[2].facts.sequence, 1U);
  EXPECT_FALSE(seen.collectives[2].ended);
  EXPECT_THAT(seen.error, HasSubstr("bad label ü"));
}

TEST_F(PythonTelemetry, GoesAtANormalEndAndStaysAfterAnError) {
  const std::string begin = "import yoke_telemetry\nt = yoke_telemetry.start()\nt.step(1)\n";

  EXPECT_EQ(python(begin).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(core::telemetry_file(root_, "a/b", 3)));
  EXPECT_EQ(python(begin + "raise ValueError('bad label 11')\n").exit_code, 1);
  EXPECT_THAT(core::TelemetryReader(core::telemetry_file(root_, "a/b", 3)).read().error,
              HasSubstr("ValueError: bad label 11"));
}

TEST_F(PythonTelemetry, WhereNoneCanBeMadeTheScriptGoesOn) {
  variables_["YOKE_TELEMETRY_DIR"] = "/dev/null/none";

  const ChildResult result = python(
      "import yoke_telemetry\nt = yoke_telemetry.start()\nt.step(1)\n"
      "with t.collective('barrier'): print('inside')\n");

  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "inside\n");
  EXPECT_THAT(result.err, HasSubstr("no telemetry"));
}

TEST_F(PythonTelemetry, ARankAsleepInItsLoaderIsNamedWithItsPythonStack) {
  for (const char* name : {"YOKE_JOB_ID", "RANK", "WORLD_SIZE"}) variables_.erase(name);

  const ChildResult result = core::run_child(
      {.command = {YOKE_PROGRAM, "launch", "--ranks", "2", "--grace", "1", "--hang-timeout", "1",
                   "--on-hang", "stop", "--", YOKE_PYTHON, YOKE_SCRIPT},
       .variables = variables_,
       .limit = 100s});

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("hang: rank 1 did not come to all-reduce #0 (1.0 MiB): rank 0 waits"),
                    HasSubstr("after step 12"), HasSubstr("where rank 1 (pid "),
                    HasSubstr("in load_the_next_batch")));
}

}  // namespace
}  // namespace yoke::cli
