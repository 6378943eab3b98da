#include "yoke/stack/explain.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"

namespace yoke::stack {
namespace {

using ::testing::HasSubstr;

Explanation explained(const std::vector<std::string>& words) {
  return explain(Matrix::built_in(), read_install_words(words));
}

const Issue* issue(const Explanation& explanation, const std::string& id) {
  const auto found = std::find_if(explanation.issues.begin(), explanation.issues.end(),
                                  [&](const Issue& item) { return item.id == id; });
  return found == explanation.issues.end() ? nullptr : &*found;
}

TEST(Explain, TheFaultySetOfAnOldBaseImageHasAllItsFaultsAndTwoRepairs) {
  InstallPlan plan = read_install_words({"torch==2.9.0+cu118", "torchvision==0.14.0+cu118"});
  plan.python = "3.8";
  plan.pip = Version::parse("20.0.2");
  plan.glibc = Version::parse("2.31");

  const Explanation explanation = explain(Matrix::built_in(), plan);

  for (const char* id :
       {"torch-build", "torchvision-pair", "torchvision-build", "python", "pip", "index"}) {
    ASSERT_NE(issue(explanation, id), nullptr) << id;
    EXPECT_EQ(issue(explanation, id)->severity, Severity::error) << id;
  }
  EXPECT_THAT(issue(explanation, "torch-build")->reason,
              HasSubstr("last torch with cu118 is 2.7.1"));
  EXPECT_THAT(issue(explanation, "torchvision-build")->reason, HasSubstr("cu116, cu117"));
  EXPECT_EQ(issue(explanation, "torchvision-pair")->fix, "torchvision==0.24.0");
  EXPECT_EQ(issue(explanation, "glibc")->severity, Severity::ok);
  ASSERT_EQ(explanation.aligned.size(), 2U);
  EXPECT_EQ(explanation.aligned[0].set.title(), "2.7.1+cu118");
  EXPECT_EQ(explanation.aligned[1].set.title(), "2.9.1+cu126");
}

TEST(Explain, ASetOfTheTableWithItsIndexIsFine) {
  const Explanation explanation =
      explained({"torch==2.9.1+cu126", "torchvision==0.24.1+cu126", "torchaudio==2.9.1+cu126",
                 "--index-url", "https://download.pytorch.org/whl/cu126"});

  EXPECT_EQ(explanation.worst(), Severity::ok);
  EXPECT_TRUE(explanation.aligned.empty());
}

TEST(Explain, AnIndexOfAnotherCudaIsAnError) {
  const Explanation explanation =
      explained({"torch==2.9.1+cu126", "--index-url=https://download.pytorch.org/whl/cu128/"});

  ASSERT_NE(issue(explanation, "index"), nullptr);
  EXPECT_THAT(issue(explanation, "index")->reason, HasSubstr("cu128"));
}

TEST(Explain, AMirrorsAddressSaysNothingOfCuda) {
  EXPECT_EQ(
      issue(explained({"torch==2.9.1+cu126", "-i", "https://mirror.example/simple"}), "index"),
      nullptr);
}

TEST(Explain, WhatIsNotPinnedIsAWarning) {
  EXPECT_EQ(issue(explained({"torch>=2.6"}), "torch-pin")->severity, Severity::warning);
  EXPECT_EQ(issue(explained({"torch==2.9.1", "torchvision"}), "torchvision-pin")->fix,
            "torchvision==0.24.1");
  EXPECT_EQ(issue(explained({"torch==2.2.2"}), "numpy")->fix, "add numpy<2");
  EXPECT_EQ(issue(explained({"torch==2.2.2", "numpy<2"}), "numpy"), nullptr);
}

TEST(Explain, AnUnknownReleaseIsNotJudged) {
  EXPECT_THAT(issue(explained({"torch==2.15.0"}), "torch-version")->reason,
              HasSubstr("cannot judge"));
}

TEST(Explain, WhatIsNoRequirementIsQuoted) {
  EXPECT_THROW(static_cast<void>(read_install_words({"torch=2.9"})), Error);
}

}  // namespace
}  // namespace yoke::stack
