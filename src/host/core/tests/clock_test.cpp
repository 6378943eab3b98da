#include "yoke/core/clock.hpp"

#include <thread>

#include <gtest/gtest.h>

namespace yoke::core {
namespace {

using namespace std::chrono_literals;

TEST(FakeClock, StandsStillUntilAdvanced) {
  FakeClock clock;
  const auto now = clock.now();
  const auto wall = clock.wall();

  EXPECT_EQ(clock.now(), now);
  clock.advance(90s);

  EXPECT_EQ(clock.now() - now, 90s);
  EXPECT_EQ(clock.wall() - wall, 90s);
}

TEST(FakeClock, IsAdvancedFromAnotherThread) {
  FakeClock clock;
  const auto now = clock.now();

  std::thread([&] { clock.advance(5ms); }).join();

  EXPECT_EQ(clock.now() - now, 5ms);
}

TEST(SystemClock, NeverGoesBack) {
  const Clock& clock = SystemClock::instance();

  auto last = clock.now();
  for (int i = 0; i < 1'000; ++i) {
    const auto now = clock.now();
    ASSERT_GE(now, last);
    last = now;
  }

  EXPECT_GT(clock.wall().time_since_epoch(), 50 * 8760h) << "the wall clock counts from 1970";
}

}  // namespace
}  // namespace yoke::core
