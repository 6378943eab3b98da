// Programs in Python that know nothing of Yoke, under `yoke launch`.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/environment.hpp"
#include "yoke/core/process.hpp"

namespace yoke::cli {
namespace {

using namespace std::chrono_literals;
using core::Child;
using core::ChildResult;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string yoke;
std::string python;
std::string script;

core::ChildOptions launch(const std::vector<std::string>& words) {
  core::ChildOptions options{.command = {yoke, "launch"}, .limit = 100s};
  options.command.insert(options.command.end(), words.begin(), words.end());
  options.variables = core::environment();
  options.variables->insert_or_assign("CUDA_VISIBLE_DEVICES", "");
  return options;
}

TEST(PythonUnderLaunch, RanksMeetByTheVariablesAloneTwoJobsAtATime) {
  Child one(launch({"--ranks", "2", "--", python, script, "--r=16"}));
  Child other(launch({"--ranks", "2", "--", python, script, "other"}));

  const ChildResult first = one.wait();
  const ChildResult second = other.wait();

  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, AllOf(HasSubstr("rank 0 of 2 mean 0.5 ['--r=16']\n"),
                               HasSubstr("rank 1 of 2 mean 0.5 ['--r=16']\n")));
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("rank 1 of 2 mean 0.5 ['other']\n"));
}

TEST(PythonUnderLaunch, AScriptIsRunByThePythonOfThePath) {
  core::ChildOptions options = launch({"--ranks", "2", "--prefix", script});
  const std::string folder = std::filesystem::path(python).parent_path().string();
  options.variables->insert_or_assign("PATH", folder + ":" + options.variables->at("PATH"));

  const ChildResult result = core::run_child(options);

  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("[r1] rank 1 of 2 mean 0.5 []\n"));
}

TEST(PythonUnderLaunch, B027TheWordsOfARecordedErrorAreTheLastLine) {
  const ChildResult result =
      core::run_child(launch({"--ranks", "2", "--grace", "1", "--", python, script, "fail"}));

  EXPECT_EQ(result.exit_code, 1);
  const std::size_t last = result.err.find_last_of('\n', result.err.size() - 2);
  EXPECT_THAT(result.err.substr(last + 1),
              AllOf(HasSubstr("rank 1 (host "), HasSubstr("bad label 11 in sample 42")));
}

std::string beside(const std::string& name) {
  return (std::filesystem::path(script).parent_path() / name).string();
}

bool has_package(const std::string& name) {
  return core::run_child({.command = {python, "-c", "import " + name}, .limit = 60s}).succeeded();
}

/// The two ranks say the same weights.
void expect_equal_ranks(const ChildResult& result, const std::string& who) {
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto weights_of = [&](int rank) {
    const std::string begin = who + " rank " + std::to_string(rank) + " of 2 weights ";
    const std::size_t at = result.out.find(begin);
    return at == std::string::npos
               ? begin + "is missing"
               : result.out.substr(at + begin.size(),
                                   result.out.find('\n', at) - at - begin.size());
  };
  EXPECT_EQ(weights_of(0), weights_of(1)) << result.out;
}

TEST(PythonUnderLaunch, ADdpScriptRunsUnchanged) {
  expect_equal_ranks(
      core::run_child(launch({"--ranks", "2", "--", python, beside("ddp_script.py")})), "ddp");
}

TEST(PythonUnderLaunch, ALightningScriptRunsUnchanged) {
  if (!has_package("lightning") && !has_package("pytorch_lightning"))
    GTEST_SKIP() << python << " has no lightning";

  expect_equal_ranks(
      core::run_child(launch({"--ranks", "2", "--", python, beside("lightning_script.py")})),
      "lightning");
}

TEST(PythonUnderLaunch, AnAccelerateScriptRunsUnchanged) {
  if (!has_package("accelerate")) GTEST_SKIP() << python << " has no accelerate";

  expect_equal_ranks(
      core::run_child(launch({"--ranks", "2", "--", python, beside("accelerate_script.py")})),
      "accelerate");
}

}  // namespace
}  // namespace yoke::cli

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc < 4) return 2;
  yoke::cli::yoke = argv[1];
  yoke::cli::python = argv[2];
  yoke::cli::script = argv[3];
  if (!std::filesystem::exists(argv[2])) {
    std::printf("no Python with torch at %s: run tools/setup --full\n", argv[2]);
    const char* required = std::getenv("YOKE_REQUIRE_FULL");
    return required != nullptr && std::string(required) == "1" ? 1 : 77;
  }
  return RUN_ALL_TESTS();
}
