#include "yoke/stack/resolve.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace yoke::stack {
namespace {

using ::testing::HasSubstr;

CardFacts card(const std::string& name) {
  const CardKind* known = Matrix::built_in().card(name);
  return {.arch = known->arch, .kind = known->kind};
}

Wishes wishes(const std::string& torch) { return {.torch = Specifiers::parse_loosely(torch)}; }

Resolution resolved(const Wishes& asked) { return resolve(Matrix::built_in(), asked); }

std::string reason(const Resolution& resolution, const std::string& title) {
  for (const Candidate& set : resolution.excluded) {
    if (set.title() == title && !set.against.empty()) return set.against.front().reason;
  }
  return "";
}

const Neighbour* neighbour(const Resolution& resolution, Demand demand) {
  const auto found = std::find_if(resolution.neighbours.begin(), resolution.neighbours.end(),
                                  [&](const Neighbour& item) { return item.demand == demand; });
  return found == resolution.neighbours.end() ? nullptr : &*found;
}

TEST(Resolve, BlackwellOnItsFirstDriverGetsTheCuda128Wheel) {
  Wishes asked = wishes("2.9");
  asked.cards = {card("RTX 5090")};
  asked.driver = Version::parse("570.26");
  asked.python = "3.12";

  const Resolution resolution = resolved(asked);

  ASSERT_FALSE(resolution.fits.empty());
  EXPECT_EQ(resolution.fits.front().title(), "2.9.1+cu128");
  EXPECT_EQ(resolution.fits.front().driver, DriverVerdict::minor_version);
  EXPECT_THAT(reason(resolution, "2.9.1+cu126"), HasSubstr("no code for sm_120"));
  EXPECT_THAT(reason(resolution, "2.9.1+cu130"), HasSubstr("570.26 < needed 580.65.06"));
}

TEST(Resolve, PascalGetsTheCuda126Wheel) {
  Wishes asked = wishes("2.9");
  asked.cards = {card("GTX 1080")};

  EXPECT_EQ(resolved(asked).fits.front().title(), "2.9.1+cu126");
}

TEST(Resolve, WithoutWishesTheNewestReleaseThatIsKnownInFull) {
  EXPECT_EQ(resolved({}).fits.front().title(), "2.14.1+cu130");
}

TEST(Resolve, UnlikeCardsMustAllBeServed) {
  Wishes asked = wishes("2.9");
  asked.cards = {card("V100"), card("RTX 5090")};
  asked.driver = Version::parse("575.57.08");

  const Resolution resolution = resolved(asked);

  EXPECT_EQ(resolution.fits.front().title(), "2.9.1+cu128");
}

TEST(Resolve, WhereNothingFitsTheNearestSetsAreNamed) {
  Wishes asked = wishes("2.11");
  asked.cards = {card("RTX 4090")};
  asked.driver = Version::parse("470.82.01");
  asked.python = "3.12";

  const Resolution resolution = resolved(asked);

  EXPECT_TRUE(resolution.fits.empty());
  const Neighbour* driver = neighbour(resolution, Demand::driver);
  ASSERT_NE(driver, nullptr);
  EXPECT_EQ(driver->change, "with a driver from 525.60.13");
  const Neighbour* torch = neighbour(resolution, Demand::torch);
  ASSERT_NE(torch, nullptr);
  EXPECT_THAT(torch->set.title(), HasSubstr("+cu118"));
}

TEST(Resolve, APythonThatHasNoWheelIsNamedWithThoseThatHave) {
  Wishes asked = wishes("2.4");
  asked.python = "3.13";

  const Resolution resolution = resolved(asked);

  EXPECT_TRUE(resolution.fits.empty());
  EXPECT_EQ(reason(resolution, "2.4.1+cu121"), "no wheel for Python 3.13 (3.8 to 3.12)");
  EXPECT_EQ(neighbour(resolution, Demand::python)->change, "with Python 3.8 to 3.12");
}

TEST(Resolve, WhatWasNotCheckedNeitherFitsNorFails) {
  const Resolution later = resolved(wishes("2.15"));
  Wishes volta = wishes("2.9");
  volta.cuda = "12.9";
  volta.cards = {card("V100")};
  const Resolution resolution = resolved(volta);

  EXPECT_TRUE(later.fits.empty());
  EXPECT_EQ(later.maybe.size(), 2U);
  EXPECT_TRUE(resolution.fits.empty());
  ASSERT_EQ(resolution.maybe.size(), 2U);
  EXPECT_EQ(resolution.maybe.front().against.front().reason, "code for sm_70: not checked");
}

TEST(Resolve, TheStringAbiAndGlibcAreWishesToo) {
  Wishes old = wishes("2.6");
  old.abi = StringAbi::old_abi;
  Wishes modern = wishes("2.6");
  modern.abi = StringAbi::new_abi;
  Wishes centos7 = wishes("2.9");
  centos7.glibc = Version::parse("2.17");

  EXPECT_EQ(resolved(old).fits.front().title(), "2.6.0+cu124");
  EXPECT_EQ(resolved(modern).fits.front().title(), "2.6.0+cu126");
  EXPECT_TRUE(resolved(centos7).fits.empty());
}

TEST(Resolve, CudaNoneIsTheBuildWithoutCuda) {
  Wishes asked = wishes("2.9");
  asked.cuda = parse_cuda_wish("cpu");

  const Resolution resolution = resolved(asked);

  EXPECT_EQ(resolution.fits.front().title(), "2.9.1+cpu");
  EXPECT_THAT(install_line(resolution.fits.front()), HasSubstr("whl/cpu"));
}

TEST(Resolve, ReadsTheSpellingsOfACuda) {
  EXPECT_EQ(parse_cuda_wish("cu128"), "12.8");
  EXPECT_EQ(parse_cuda_wish("12"), "12");
  EXPECT_EQ(parse_cuda_wish("none"), "none");
  EXPECT_FALSE(parse_cuda_wish("cuda").has_value());
}

TEST(Resolve, PtxNeedsADriverAsNewAsItsCuda) {
  Wishes asked = wishes("2.7");
  asked.cuda = "12.8";
  asked.cards = {{.arch = Arch{13, 0}}};
  asked.driver = Version::parse("570.26");
  const Resolution native = resolved(asked);

  EXPECT_EQ(native.fits.front().title(), "2.7.1+cu128") << "12.8.0 was released with 570.26";
  EXPECT_THAT(native.fits.front().notes.front(), HasSubstr("PTX"));
}

}  // namespace
}  // namespace yoke::stack
