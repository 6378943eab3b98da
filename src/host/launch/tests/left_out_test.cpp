#include "left_out.hpp"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace yoke::launch {
namespace {

using ::testing::HasSubstr;

const Failure kKilled{.rank = 2, .signal = SIGKILL};

TEST(LeftOut, ARankThatIsKilledTwiceInARowIsLeftOutForOneAttempt) {
  LeftOut left_out({.ranks = 4, .fewest = 2});

  EXPECT_EQ(left_out.after(kKilled, 0), "");
  EXPECT_EQ(left_out.ranks(), 4);
  EXPECT_THAT(left_out.after(kKilled, 0), HasSubstr("going on with 3 of 4 ranks"));
  EXPECT_EQ(left_out.ranks(), 3);
  EXPECT_THAT(left_out.after(kKilled, 0), HasSubstr("trying all 4 ranks again"));
  EXPECT_EQ(left_out.ranks(), 4);
}

TEST(LeftOut, ItsCardIsTakenFromTheList) {
  LeftOut left_out({.ranks = 4, .fewest = 2});
  static_cast<void>(left_out.after(kKilled, 0));
  static_cast<void>(left_out.after(kKilled, 0));
  core::EnvironmentMap extra;

  left_out.hide_card(extra, {{"CUDA_VISIBLE_DEVICES", "4,5,6,7"}});

  EXPECT_EQ(extra.at("CUDA_VISIBLE_DEVICES"), "4,5,7");
}

TEST(LeftOut, AFaultOfTheProgramLeavesNobodyOut) {
  LeftOut left_out({.ranks = 4, .fewest = 2});
  const Failure fault{.rank = 2, .exit_code = 1, .code = "corrupt_data"};

  EXPECT_EQ(left_out.after(fault, 0), "");
  EXPECT_EQ(left_out.after(fault, 0), "");
  EXPECT_EQ(left_out.ranks(), 4);
}

TEST(LeftOut, AnXidIsALostCard) {
  LeftOut left_out({.ranks = 2, .fewest = 1});
  const Failure lost{.rank = 1, .exit_code = 1, .message = "CUDA error: unspecified (Xid 79)"};

  EXPECT_EQ(left_out.after(lost, 0), "");
  EXPECT_NE(left_out.after(lost, 0), "");
  EXPECT_EQ(left_out.ranks(), 1);
}

TEST(LeftOut, NobodyBelowTheFewestAndOtherRanksDoNotAddUp) {
  LeftOut few({.ranks = 2, .fewest = 2});
  LeftOut others({.ranks = 4, .fewest = 1});

  static_cast<void>(few.after(kKilled, 0));
  EXPECT_EQ(few.after(kKilled, 0), "");
  static_cast<void>(others.after(kKilled, 0));
  EXPECT_EQ(others.after({.rank = 1, .signal = SIGKILL}, 0), "");
  EXPECT_EQ(others.ranks(), 4);
}

}  // namespace
}  // namespace yoke::launch
