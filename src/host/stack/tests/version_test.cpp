#include "yoke/stack/version.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "yoke/stack/requirement.hpp"

namespace yoke::stack {
namespace {

Version version(const std::string& text) {
  const auto parsed = Version::parse(text);
  EXPECT_TRUE(parsed.has_value()) << text;
  return parsed.value_or(Version{});
}

bool allows(const std::string& specifiers, const std::string& candidate) {
  const auto parsed = Specifiers::parse(specifiers);
  EXPECT_TRUE(parsed.has_value()) << specifiers;
  return parsed && parsed->allow(version(candidate));
}

TEST(Version, ComesInTheOrderOfPep440) {
  const std::vector<std::string> ascending{
      "1.0.dev1", "1.0a1.dev1", "1.0a1",     "1.0a2", "1.0b1",          "1.0rc1",
      "1.0",      "1.0+abc",    "1.0+abc.1", "1.0+5", "1.0.post1.dev2", "1.0.post1",
      "1.0.1",    "1.1",        "1.10",      "2.0",   "1!0.1"};

  for (std::size_t i = 0; i < ascending.size(); ++i) {
    for (std::size_t j = 0; j < ascending.size(); ++j) {
      EXPECT_EQ(version(ascending[i]) <=> version(ascending[j]), i <=> j)
          << ascending[i] << " against " << ascending[j];
    }
  }
}

TEST(Version, EqualSpellingsAreEqual) {
  EXPECT_EQ(version("2.9"), version("2.9.0"));
  EXPECT_EQ(version("V2.9-RC.1"), version("2.9rc1"));
  EXPECT_EQ(version("1.0-1"), version("1.0.post1"));
  EXPECT_EQ(version("1.0_Alpha"), version("1.0a0"));
  EXPECT_EQ(version("1.0+Ubuntu-1"), version("1.0+ubuntu.1"));
  EXPECT_EQ(version("2.9.0a0+5228986.nv25.09").normal(), "2.9.0a0+5228986.nv25.09");
}

TEST(Version, DriverVersionsCompareByTheirNumbers) {
  EXPECT_LT(version("570.26"), version("570.124.06"));
  EXPECT_LT(version("570.124.06"), version("570.124.10"));
  EXPECT_EQ(version("570.124.06").text(), "570.124.06");
}

TEST(Version, KeepsItsParts) {
  const Version torch = version("2.9.1+cu126");

  EXPECT_EQ(torch.local(), "cu126");
  EXPECT_EQ(torch.series(2), "2.9");
  EXPECT_EQ(torch.without_local().text(), "2.9.1");
  EXPECT_FALSE(torch.is_prerelease());
  EXPECT_TRUE(version("2.9.0.dev20250801").is_prerelease());
}

TEST(Version, WhatIsNoVersionIsRefused) {
  for (const char* text : {"", "abc", "1.", "1..2", "1.0+", "1.0+a+b", "1.0+a..b", "1.0 0", "1!",
                           "9999999999999999999", "1.0+a."}) {
    EXPECT_FALSE(Version::parse(text).has_value()) << text;
  }
}

TEST(Specifiers, TakeWhatPep440SaysTheyTake) {
  EXPECT_TRUE(allows("==2.9.0", "2.9.0+cu118"));
  EXPECT_FALSE(allows("==2.9.0+cu126", "2.9.0+cu118"));
  EXPECT_TRUE(allows("==2.9.*", "2.9.1+cu118"));
  EXPECT_FALSE(allows("==2.9.*", "2.10"));
  EXPECT_TRUE(allows("!=2.9.*", "2.10"));
  EXPECT_TRUE(allows("~=2.9.1", "2.9.5"));
  EXPECT_FALSE(allows("~=2.9.1", "2.10"));
  EXPECT_TRUE(allows(">=2.8, <2.10", "2.9.1"));
  EXPECT_FALSE(allows("<2.9", "2.9rc1"));
  EXPECT_TRUE(allows("<2.9rc2", "2.9rc1"));
  EXPECT_FALSE(allows(">1.0", "1.0.post1"));
  EXPECT_FALSE(allows(">1.0", "1.0+local"));
  EXPECT_TRUE(allows("<=1.0", "1.0+local"));
  EXPECT_TRUE(allows("===1.0", "1.0"));
  EXPECT_TRUE(allows("", "7"));
}

TEST(Specifiers, ANumberAloneMeansItsSeries) {
  EXPECT_TRUE(Specifiers::parse_loosely("2.9")->allow(version("2.9.1+cu126")));
  EXPECT_FALSE(Specifiers::parse_loosely("2.9.0")->allow(version("2.9.1")));
  EXPECT_TRUE(Specifiers::parse_loosely(">=2.8")->allow(version("2.9.1")));
  EXPECT_FALSE(Specifiers::parse_loosely("newest").has_value());
}

TEST(Specifiers, WhatIsNoListIsRefused) {
  for (const char* text : {"2.9", "=2.9", "~=2", ">=2.*", "==", ">=2,,<3", "=== "}) {
    EXPECT_FALSE(Specifiers::parse(text).has_value()) << text;
  }
}

TEST(Requirement, IsReadWithAllItsParts) {
  const auto plain = Requirement::parse("Torch_Vision == 0.24.1+cu126 ; python_version < '3.13'");
  const auto extras = Requirement::parse("cuda-toolkit[cublas, cudart]==13.0.2");
  const auto bracketed = Requirement::parse("nvidia-nccl-cu12 (==2.27.5)");
  const auto direct = Requirement::parse("torch @ https://example.org/torch.whl");

  ASSERT_TRUE(plain && extras && bracketed && direct);
  EXPECT_EQ(plain->name, "torch-vision");
  EXPECT_EQ(plain->versions.exact()->local(), "cu126");
  EXPECT_EQ(plain->marker, "python_version < '3.13'");
  EXPECT_EQ(extras->extras, (std::vector<std::string>{"cublas", "cudart"}));
  EXPECT_EQ(bracketed->versions.exact()->text(), "2.27.5");
  EXPECT_EQ(direct->url, "https://example.org/torch.whl");
  for (const char* text : {"", "==2.9", "torch 2.9", "torch[", "torch @"}) {
    EXPECT_FALSE(Requirement::parse(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace yoke::stack
