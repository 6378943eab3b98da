#include "launch_options.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"

namespace yoke::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Words = std::vector<std::string>;

std::string refusal(const Words& words, Code code = Code::invalid_argument) {
  try {
    static_cast<void>(parse_launch(words));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  ADD_FAILURE() << "was taken";
  return {};
}

TEST(LaunchOptions, B022WhatFollowsTheProgramIsItsOwn) {
  const Words own{"./train", "--r=16", "--mo", "0.9", "--log", "x", "--local", "3", "--", "-m"};
  Words bare{"--nproc-per-node", "1"};
  bare.insert(bare.end(), own.begin(), own.end());
  Words dashed{"--nproc-per-node=1", "--"};
  dashed.insert(dashed.end(), own.begin(), own.end());

  EXPECT_EQ(parse_launch(bare).options.command, own);
  EXPECT_EQ(parse_launch(dashed).options.command, own);
  EXPECT_EQ(parse_launch(dashed).ranks, "1");
}

TEST(LaunchOptions, AProgramMayHaveANameThatLooksLikeAnOption) {
  EXPECT_THAT(parse_launch({"--", "--prefix", "--help"}).options.command,
              ElementsAre("--prefix", "--help"));
  EXPECT_THAT(parse_launch({"-"}).options.command, ElementsAre("-"));
}

TEST(LaunchOptions, B022AnUnknownOptionBeforeTheProgramIsNamed) {
  EXPECT_THAT(refusal({"--r=16", "./train"}), HasSubstr("unknown option --r=16"));
  EXPECT_THAT(refusal({"--max-tim", "3", "./train"}),
              AllOf(HasSubstr("--max-tim"), HasSubstr("did you mean --max-time?")));
  EXPECT_THAT(refusal({"-n", "2", "./train"}), HasSubstr("unknown option -n"));
}

TEST(LaunchOptions, TorchrunsSpellingIsTaken) {
  const LaunchRequest request = parse_launch(
      {"--standalone", "--nnodes=1", "--nproc_per_node", "gpu", "--no-python", "a.py"});

  EXPECT_EQ(request.ranks, "gpu");
  EXPECT_THAT(request.options.command, ElementsAre("a.py"));
}

TEST(LaunchOptions, SeveralMachinesAreRefusedWithWhatToUse) {
  EXPECT_THAT(refusal({"--nnodes", "2", "./train"}, Code::unsupported),
              AllOf(HasSubstr("--nnodes 2"), HasSubstr("srun")));
}

TEST(LaunchOptions, PythonIsPutBeforeScriptsAndModules) {
  EXPECT_THAT(parse_launch({"train.py", "--lr", "1"}).options.command,
              ElementsAre("python3", "-u", "train.py", "--lr", "1"));
  EXPECT_THAT(parse_launch({"-m", "pkg.train", "-m", "x"}).options.command,
              ElementsAre("python3", "-u", "-m", "pkg.train", "-m", "x"));
  EXPECT_THAT(parse_launch({"python", "train.py"}).options.command,
              ElementsAre("python", "train.py"));
}

TEST(LaunchOptions, ValuesReachTheLauncher) {
  const LaunchRequest request = parse_launch(
      {"--master-port", "4711", "--max-time=90", "--grace", "0.25", "--signal-grace", "60", "--tee",
       "--job-id", "a1", "--failure-file", "f.json", "--ranks", "3", "./train"});

  EXPECT_EQ(request.options.port, 4711);
  EXPECT_EQ(request.options.max_time, 90s);
  EXPECT_EQ(request.options.grace, 250ms);
  EXPECT_EQ(request.options.signal_grace, 60s);
  EXPECT_TRUE(request.options.prefix);
  EXPECT_EQ(request.options.job_id, "a1");
  EXPECT_EQ(request.options.failure_file, "f.json");
  EXPECT_EQ(request.ranks, "3");
  EXPECT_EQ(request.ranks_option, "--ranks");
}

TEST(LaunchOptions, PortZeroIsAFreeOne) {
  EXPECT_FALSE(parse_launch({"--master-port", "0", "./train"}).options.port);
}

TEST(LaunchOptions, AWrongValueIsQuoted) {
  EXPECT_THAT(refusal({"--master-port", "70000", "x"}), HasSubstr("'70000'"));
  EXPECT_THAT(refusal({"--master-port", "http", "x"}), HasSubstr("'http'"));
  for (const char* seconds : {"-1", "soon", "nan", "inf", "5s", ""})
    EXPECT_THAT(refusal({"--grace", seconds, "x"}), HasSubstr(std::string("'") + seconds + "'"));
  EXPECT_THAT(refusal({"--job-id", "a/b", "x"}), HasSubstr("'a/b'"));
  EXPECT_THAT(refusal({"--ranks=", "x"}), HasSubstr("empty value"));
  EXPECT_THAT(refusal({"--ranks"}), HasSubstr("--ranks needs a value"));
}

TEST(LaunchOptions, AProgramIsNeeded) {
  EXPECT_THAT(refusal({}), HasSubstr("no program given"));
  EXPECT_THAT(refusal({"--ranks", "2", "--"}), HasSubstr("no program given"));
  EXPECT_THAT(refusal({"-m"}), HasSubstr("-m without a module"));
}

TEST(LaunchOptions, HelpNeedsNoProgram) { EXPECT_TRUE(parse_launch({"--help"}).help); }

}  // namespace
}  // namespace yoke::cli
