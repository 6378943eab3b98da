#include "yoke/stack/driver.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace yoke::stack {
namespace {

using ::testing::HasSubstr;

DriverJudgement judge(const std::string& driver, const std::string& cuda,
                      const CardFacts& card = {}) {
  return judge_driver(Matrix::built_in(), *Version::parse(driver), *Version::parse(cuda), card);
}

constexpr Arch kBlackwell{.major = 12, .minor = 0};

TEST(Driver, AsNewAsItsToolkitIsNative) {
  EXPECT_EQ(judge("570.124.06", "12.8.1").verdict, DriverVerdict::native);
  EXPECT_EQ(judge("610.43.02", "12.8.1").verdict, DriverVerdict::native);
  EXPECT_EQ(judge("570.26", "12.8").verdict, DriverVerdict::native);
}

TEST(Driver, AtTheFloorOfTheFamilyIsMinorVersion) {
  EXPECT_EQ(judge("525.60.13", "12.8.1").verdict, DriverVerdict::minor_version);
  EXPECT_EQ(judge("580.65.06", "13.2.1").verdict, DriverVerdict::minor_version);
  EXPECT_EQ(judge("580.95.05", "13.0.3").verdict, DriverVerdict::minor_version)
      << "the driver of 13.0.3 is not checked, so only that of 13.1.0 is surely new enough";
}

TEST(Driver, BelowTheFloorOnlyTheCompatPackageHelpsAndOnlyOnDataCentreCards) {
  const CardFacts h100{.arch = Arch{9, 0}, .kind = CardClass::data_centre};
  const CardFacts geforce{.arch = Arch{8, 9}, .kind = CardClass::consumer};

  EXPECT_EQ(judge("570.124.06", "13.0.0", h100).verdict, DriverVerdict::compat_package);
  EXPECT_EQ(judge("570.124.06", "13.0.0", geforce).verdict, DriverVerdict::no);
  EXPECT_EQ(judge("570.124.06", "13.0.0").needed->text(), "580.65.06");
}

TEST(Driver, BlackwellNeedsItsOwnFloorWhateverTheFamilySays) {
  const CardFacts card{.arch = kBlackwell, .kind = CardClass::consumer};

  EXPECT_EQ(judge("560.35.05", "12.8.1", card).verdict, DriverVerdict::no);
  EXPECT_EQ(judge("560.35.05", "12.8.1", card).needed->text(), "570.26");
  EXPECT_EQ(judge("570.26", "12.8.1", card).verdict, DriverVerdict::minor_version);
}

TEST(Driver, BeforeCudaElevenThereAreNoMinorVersions) {
  const DriverJudgement judgement = judge("390.116", "9.2");

  EXPECT_EQ(judgement.verdict, DriverVerdict::no);
  EXPECT_THAT(judgement.reason, HasSubstr("390.116 < needed 396"));
}

TEST(Driver, AnUnknownCudaIsNotChecked) {
  EXPECT_EQ(judge("610.43.02", "14.0").verdict, DriverVerdict::not_checked);
}

TEST(Driver, ItsCudaIsTheNewestThatItWasReleasedWith) {
  const Matrix& matrix = Matrix::built_in();

  EXPECT_EQ(cuda_of_driver(matrix, *Version::parse("570.133.20"))->text(), "12.8");
  EXPECT_EQ(cuda_of_driver(matrix, *Version::parse("580.95.05"))->text(), "13.0");
  EXPECT_FALSE(cuda_of_driver(matrix, *Version::parse("300.1")).has_value());
}

TEST(Code, RunsOnEqualMajorAndEqualOrLowerMinor) {
  const std::vector<Arch> archs{{8, 0}, {8, 6}, {9, 0}};

  EXPECT_EQ(judge_code({8, 9}, archs, false), CodeVerdict::machine_code);
  EXPECT_EQ(judge_code({9, 0}, archs, false), CodeVerdict::machine_code);
  EXPECT_EQ(judge_code({7, 5}, archs, true), CodeVerdict::none);
  EXPECT_EQ(judge_code(kBlackwell, archs, true), CodeVerdict::ptx);
  EXPECT_EQ(judge_code(kBlackwell, archs, false), CodeVerdict::none);
  EXPECT_EQ(judge_code(kBlackwell, archs, std::nullopt), CodeVerdict::not_checked);
  EXPECT_EQ(judge_code(kBlackwell, std::nullopt, true), CodeVerdict::not_checked);
}

}  // namespace
}  // namespace yoke::stack
