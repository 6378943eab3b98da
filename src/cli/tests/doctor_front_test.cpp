// `yoke stack` and `yoke doctor` as their user meets them.

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/process.hpp"

namespace yoke::cli {
namespace {

using namespace std::chrono_literals;
using core::ChildResult;
using ::testing::AllOf;
using ::testing::HasSubstr;

ChildResult yoke(const std::vector<std::string>& words, const core::EnvironmentMap& set = {}) {
  core::ChildOptions options{.command = {YOKE_PROGRAM}, .limit = 30s};
  options.command.insert(options.command.end(), words.begin(), words.end());
  options.variables = core::EnvironmentMap{{"PATH", "/usr/bin"}};
  for (const auto& [name, value] : set) options.variables->insert_or_assign(name, value);
  return core::run_child(options);
}

const std::vector<std::string> kBlackwell{"stack",  "resolve",  "--torch", "2.9",      "--gpu",
                                          "sm_120", "--driver", "570.26",  "--python", "3.12"};

TEST(Stack, ResolvePrintsTheSetThatFitsAndWhatExcludesTheOthers) {
  const ChildResult result = yoke(kBlackwell);

  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.out.starts_with(
      "torch 2.9.1+cu128, torchvision 0.24.1, torchaudio 2.9.1, triton 3.5.1\n"))
      << result.out;
  EXPECT_THAT(result.out, AllOf(HasSubstr("driver: minor-version"),
                                HasSubstr("2.9.1+cu126   no code for sm_120"),
                                HasSubstr("2.9.1+cu130   driver 570.26 < needed 580.65.06")));
}

TEST(Stack, ResolveAsJsonHasASchema) {
  std::vector<std::string> words = kBlackwell;
  words.emplace_back("--json");

  const core::Json json = core::parse_json(yoke(words).out, "answer");

  EXPECT_EQ(json.at("schema"), "yoke.resolve/1");
  EXPECT_EQ(json.at("fits").at(0).at("torch"), "2.9.1+cu128");
}

TEST(Stack, WhereNothingFitsTheExitCodeIsOneAndTheNearestAreNamed) {
  const ChildResult result = yoke({"stack", "resolve", "--torch", "2.4", "--python=3.13"});

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, AllOf(HasSubstr("no set fits"), HasSubstr("with Python 3.8 to 3.12")));
}

TEST(Stack, AWrongWordIsAUsageErrorThatQuotesIt) {
  EXPECT_EQ(yoke({"stack"}).exit_code, 2);
  const ChildResult option = yoke({"stack", "resolve", "--tosch", "2.9"});
  EXPECT_EQ(option.exit_code, 2);
  EXPECT_THAT(option.err, AllOf(HasSubstr("--tosch"), HasSubstr("did you mean --torch?")));
  EXPECT_THAT(yoke({"stack", "resolve", "--gpu", "fast"}).err, HasSubstr("'fast'"));
  EXPECT_THAT(yoke({"stack", "reslove"}).err, HasSubstr("did you mean resolve?"));
  EXPECT_THAT(yoke({"stack", "show", "9.9"}).err, HasSubstr("no torch 9.9"));
}

TEST(Stack, ExplainNamesFaultsAndTheSetsThatKeepAPart) {
  const ChildResult result =
      yoke({"stack", "explain", "torch==2.9.0+cu118 torchvision==0.14.0+cu118"});

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, AllOf(HasSubstr("torch-build"), HasSubstr("torchvision-pair"),
                                HasSubstr("to keep CUDA 11.8: pip install torch==2.7.1+cu118"),
                                HasSubstr("to keep torch 2.9: pip install torch==2.9.1+cu126")));
}

TEST(Stack, ShowPrintsReleasesAndWhatIsNotChecked) {
  EXPECT_THAT(yoke({"stack", "show"}).out, HasSubstr("cu130*"));
  EXPECT_THAT(yoke({"stack", "show", "2.15"}).out, HasSubstr("not checked"));
}

TEST(Stack, InstalledIsReadFromAFolder) {
  const stack::Scratch scratch;
  scratch.write("torch/version.py", "__version__ = '2.9.1+cpu'\ncuda = None\n");

  const ChildResult result =
      yoke({"stack", "show", "--installed", "--site", scratch.folder().string()});

  EXPECT_THAT(result.out, AllOf(HasSubstr("torch 2.9.1+cpu"), HasSubstr("not read: ")));
}

TEST(Doctor, AMachineWithoutTorchIsAWarning) {
  const stack::Scratch scratch;

  const ChildResult result = yoke({"doctor", "--root", scratch.folder().string()});

  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_THAT(result.out, AllOf(HasSubstr("no Python found"), HasSubstr("nothing stops training")));
}

TEST(Doctor, WhatStopsTrainingIsExitThreeAndTheLastLines) {
  const stack::Scratch scratch;
  scratch.write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  scratch.write("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");

  const ChildResult result = yoke({"doctor", "--root", scratch.folder().string()});

  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.out,
              HasSubstr("cannot train: NVIDIA cards on the bus: 1, and the kernel module "
                        "is not loaded\n  do: "));
}

TEST(Doctor, JsonHasASchemaAndOnlyTheChecksAskedFor) {
  const ChildResult result = yoke({"doctor", "--json", "--only", "host", "--skip", "host.shm"});

  const core::Json json = core::parse_json(result.out, "answer");

  EXPECT_EQ(json.at("schema"), "yoke.doctor/1");
  EXPECT_EQ(json.at("checks").size(), 5U);
}

TEST(Doctor, WhatItCannotLookAtIsExitTwo) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"doctor", "--only", "hots"},
                                             {"doctor", "--process", "x"},
                                             {"doctor", "--process", "1073741823"},
                                             {"doctor", "--image", "/nonexistent"},
                                             {"doctor", "--image", "/usr/bin/env"},
                                             {"doctor", "word"},
                                             {"doctor", "--explain", "nothing known"}}) {
    EXPECT_EQ(yoke(words).exit_code, 2) << words.back();
  }
}

TEST(Doctor, ExplainsATextWithTheLineToChange) {
  const ChildResult result = yoke({"doctor", "--explain", "EADDRINUSE: address already in use"});

  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, AllOf(HasSubstr("address-in-use"), HasSubstr("--standalone")));
}

TEST(Doctor, B110TellsTheStringAbiOfALibraryAndWhetherItFitsThisProgram) {
  const ChildResult before = yoke({"doctor", "--library", YOKE_STRING_ABI_0});
  const ChildResult since = yoke({"doctor", "--library", YOKE_STRING_ABI_1});
  constexpr bool kNew = _GLIBCXX_USE_CXX11_ABI != 0;

  EXPECT_THAT(before.out, HasSubstr("old string ABI"));
  EXPECT_EQ(before.exit_code, kNew ? 3 : 0);
  EXPECT_THAT(since.out, HasSubstr("new string ABI"));
  EXPECT_EQ(since.exit_code, kNew ? 0 : 3);
}

TEST(Doctor, TakesLessThanASecond) {
  auto fastest = 60'000ms;
  for (int i = 0; i < 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    static_cast<void>(yoke({"doctor"}));
    fastest = std::min(fastest, std::chrono::duration_cast<std::chrono::milliseconds>(
                                    std::chrono::steady_clock::now() - begin));
  }

  EXPECT_LT(fastest, 1000ms);
}

}  // namespace
}  // namespace yoke::cli
