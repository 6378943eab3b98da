#include "yoke/feed/worker_count.hpp"

#include <gtest/gtest.h>

namespace yoke::feed {
namespace {

using namespace std::chrono_literals;

constexpr WorkerCount::Window kIdle{.elapsed = 1s, .waited = 0s, .always_full = true};
constexpr WorkerCount::Window kBusy{.elapsed = 1s, .waited = 5ms, .always_full = false};
constexpr WorkerCount::Window kLate{.elapsed = 1s, .waited = 20ms, .always_full = false};

// A reader that waits with fewer than `needed` threads.
void run(WorkerCount& count, unsigned needed, int windows) {
  for (int i = 0; i < windows; ++i) count.update(count.value() < needed ? kLate : kIdle);
}

TEST(WorkerCount, BeginsWithAllAndKeepsThemWhileSlotsAreNotFull) {
  WorkerCount count(8);

  for (int i = 0; i < 100; ++i) count.update(kBusy);

  EXPECT_EQ(count.value(), 8U);
}

TEST(WorkerCount, SettlesAtWhatIsNeeded) {
  for (unsigned needed = 1; needed <= 16; ++needed) {
    WorkerCount count(16);

    run(count, needed, 500);
    const unsigned settled = count.value();
    run(count, needed, 500);

    EXPECT_EQ(settled, needed);
    EXPECT_EQ(count.value(), settled);
  }
}

TEST(WorkerCount, GrowsWhereMoreIsNeededLater) {
  WorkerCount count(16);
  run(count, 2, 500);

  run(count, 12, 10);

  EXPECT_GE(count.value(), 12U);
}

TEST(WorkerCount, NeverLeavesItsBounds) {
  WorkerCount count(3);
  for (int i = 0; i < 100; ++i) EXPECT_LE(count.update(kLate), 3U);

  WorkerCount idle(3);
  for (int i = 0; i < 100; ++i) EXPECT_GE(idle.update(kIdle), 1U);
}

}  // namespace
}  // namespace yoke::feed
