#include "yoke/feed/slot_ring.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "errors.hpp"

namespace yoke::feed {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// A gate that is closed until open(); waiting at it has a limit.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, 20s, [this] { return is_open_; })) {
      throw std::runtime_error("the gate stayed closed for 20 s");
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
};

// Batches whose ticket-th has ticket mod 4 rows; row r of ticket t is 100 t + r.
class Table {
 public:
  explicit Table(std::size_t slots) : slots_(slots) {}

  RingWork work() {
    return {.rows = [](std::int64_t ticket) { return ticket % 4; },
            .fill =
                [this](const Piece& piece) {
                  for (std::int64_t row = piece.first; row < piece.last; ++row) {
                    slots_[piece.slot][static_cast<std::size_t>(row)] = 100 * piece.ticket + row;
                  }
                }};
  }

  [[nodiscard]] bool holds(const SlotRing::Ready& ready) const {
    for (std::int64_t row = 0; row < ready.ticket % 4; ++row) {
      if (slots_[ready.slot][static_cast<std::size_t>(row)] != 100 * ready.ticket + row) {
        return false;
      }
    }
    return true;
  }

 private:
  std::vector<std::array<std::int64_t, 4>> slots_;
};

struct Setting {
  std::size_t slots;
  unsigned workers;
  std::int64_t rows_per_piece;
};

class SlotRings : public ::testing::TestWithParam<Setting> {
 protected:
  [[nodiscard]] static RingOptions options() {
    return {.slots = GetParam().slots,
            .workers = GetParam().workers,
            .rows_per_piece = GetParam().rows_per_piece,
            .timeout = 20s};
  }
};

INSTANTIATE_TEST_SUITE_P(Settings, SlotRings,
                         ::testing::Values(Setting{1, 0, 1}, Setting{3, 0, 2}, Setting{1, 1, 1},
                                           Setting{2, 1, 8}, Setting{4, 4, 1}, Setting{3, 8, 2}),
                         [](const auto& setting) {
                           return std::to_string(setting.param.slots) + "Slots" +
                                  std::to_string(setting.param.workers) + "Workers";
                         });

TEST_P(SlotRings, HandOutEveryBatchInOrder) {
  Table table(options().slots);
  SlotRing ring(options(), table.work());

  ring.seek(5, 205);

  std::int64_t expected = 5;
  while (const auto ready = ring.next()) {
    EXPECT_EQ(ready->ticket, expected++);
    EXPECT_TRUE(table.holds(*ready));
    ring.release();
  }
  EXPECT_EQ(expected, 205);
  EXPECT_FALSE(ring.next().has_value());
  EXPECT_EQ(ring.report().handed_out, 200);
}

TEST_P(SlotRings, BeginAnewWhereverTheyAre) {
  Table table(options().slots);
  SlotRing ring(options(), table.work());

  for (const std::int64_t first : {0, 700, 3, 3, 41}) {
    ring.seek(first);
    for (std::int64_t i = 0; i < 5; ++i) {
      const auto ready = ring.next();
      ASSERT_TRUE(ready.has_value());
      EXPECT_EQ(ready->ticket, first + i);
      EXPECT_TRUE(table.holds(*ready));
      ring.release();
    }
  }
}

TEST_P(SlotRings, EndAtAnyMoment) {
  for (int batches = 0; batches < 20; ++batches) {
    Table table(options().slots);
    SlotRing ring(options(), table.work());
    ring.seek(0);
    for (int i = 0; i < batches; ++i) {
      ASSERT_TRUE(ring.next().has_value());
      ring.release();
    }
  }
}

TEST_P(SlotRings, ThrowTheErrorOfTheFirstFailingBatchAfterThoseBefore) {
  const RingWork work{.rows = [](std::int64_t) { return 5; },
                      .fill =
                          [](const Piece& piece) {
                            for (std::int64_t row = piece.first; row < piece.last; ++row) {
                              if (piece.ticket >= 7 && row >= 2) {
                                throw std::runtime_error(std::to_string(100 * piece.ticket + row));
                              }
                            }
                          }};
  SlotRing ring(options(), work);
  ring.seek(0);

  std::int64_t handed_out = 0;
  std::vector<std::string> errors;
  while (errors.size() < 2) {
    try {
      const auto ready = ring.next();
      ASSERT_EQ(ready->ticket, handed_out++);
      ring.release();
    } catch (const std::runtime_error& error) {
      errors.emplace_back(error.what());
    }
  }

  EXPECT_EQ(handed_out, 7);
  EXPECT_THAT(errors, ::testing::ElementsAre("702", "702"));
}

TEST_P(SlotRings, GoOnFromASeekAfterAnError) {
  std::atomic<bool> broken{true};
  const RingWork work{.rows = [](std::int64_t) { return 1; },
                      .fill =
                          [&](const Piece&) {
                            if (broken) throw std::runtime_error("broken");
                          }};
  SlotRing ring(options(), work);
  ring.seek(0);
  EXPECT_THROW((void)ring.next(), std::runtime_error);

  broken = false;
  ring.seek(4);

  EXPECT_EQ(ring.next()->ticket, 4);
}

TEST(SlotRing, LetsNobodyInWhileItRests) {
  std::atomic<bool> resting{false};
  std::atomic<int> entered{0};
  const auto enter = [&] {
    if (resting) ++entered;
  };
  SlotRing ring({.slots = 3, .workers = 4, .timeout = 20s},
                {.rows =
                     [&](std::int64_t) {
                       enter();
                       return 2;
                     },
                 .fill = [&](const Piece&) { enter(); }});

  for (int round = 0; round < 50; ++round) {
    ring.seek(round);
    EXPECT_EQ(ring.next()->ticket, round);
    ring.rest();
    resting = true;
    std::this_thread::yield();
    resting = false;
  }

  EXPECT_EQ(entered, 0);
}

TEST(SlotRing, FillsNoMoreThanItsSlotsAhead) {
  std::mutex mutex;
  std::set<std::int64_t> filled;
  Gate three;
  const RingWork work{.rows = [](std::int64_t) { return 1; },
                      .fill =
                          [&](const Piece& piece) {
                            const std::lock_guard lock(mutex);
                            filled.insert(piece.ticket);
                            if (filled.size() == 3) three.open();
                          }};
  SlotRing ring({.slots = 3, .workers = 4}, work);

  ring.seek(0);
  three.wait();
  EXPECT_EQ(ring.next()->ticket, 0);
  EXPECT_EQ(ring.next()->ticket, 1);
  EXPECT_EQ(ring.next()->ticket, 2);

  // All slots are held, so nobody may have begun a fourth batch, now or before.
  const std::lock_guard lock(mutex);
  EXPECT_EQ(filled, (std::set<std::int64_t>{0, 1, 2}));
}

TEST(SlotRing, RefusesToHandOutMoreThanItsSlots) {
  SlotRing ring({.slots = 2, .workers = 0},
                {.rows = [](std::int64_t) { return 1; }, .fill = [](const Piece&) {}});
  ring.seek(0);
  (void)ring.next();
  (void)ring.next();

  EXPECT_FALSE(ring.has_next());
  EXPECT_EQ(error_of([&] { (void)ring.next(); }).code(), Code::invalid_argument);
}

TEST(SlotRing, LetsOtherWorkersFinishABatchWhoseOneRowIsSlow) {
  Gate others_done;
  std::atomic<int> others{0};
  // Row 0 of batch 0 comes to its end only after all other rows of three batches have.
  const RingWork work{.rows = [](std::int64_t) { return 4; },
                      .fill =
                          [&](const Piece& piece) {
                            if (piece.ticket == 0 && piece.first == 0) {
                              others_done.wait();
                            } else if (++others == 11) {
                              others_done.open();
                            }
                          }};
  SlotRing ring({.slots = 3, .workers = 2, .timeout = 20s}, work);

  ring.seek(0, 3);

  for (std::int64_t ticket = 0; ticket < 3; ++ticket) {
    EXPECT_EQ(ring.next()->ticket, ticket);
    ring.release();
  }
}

TEST(SlotRing, SaysWhatItWaitedForWhenTheTimeIsUp) {
  Gate gate;
  const RingWork work{.rows = [](std::int64_t) { return 2; },
                      .fill = [&](const Piece&) { gate.wait(); }};
  SlotRing ring({.slots = 2, .workers = 1, .timeout = 30ms}, work);
  ring.seek(3);

  const Error waiting = error_of([&] { (void)ring.next(); });
  const Error seeking = error_of([&] { ring.seek(9); });
  gate.open();

  EXPECT_EQ(waiting.code(), Code::timeout);
  EXPECT_THAT(waiting.message(), HasSubstr("wait for batch 3: not done after 30 ms; 1 pieces"));
  EXPECT_EQ(seeking.code(), Code::timeout);
}

TEST(SlotRing, CountsTheTimeThatItsReaderWaited) {
  Gate gate;
  const RingWork work{.rows = [](std::int64_t) { return 1; },
                      .fill =
                          [&](const Piece& piece) {
                            if (piece.ticket == 1) gate.wait();
                          }};
  SlotRing ring({.slots = 2, .workers = 1, .timeout = 20s}, work);
  ring.seek(0, 2);
  (void)ring.next();

  std::thread opener([&] {
    const auto until = std::chrono::steady_clock::now() + 5ms;
    while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
    gate.open();
  });
  (void)ring.next();
  opener.join();

  EXPECT_GT(ring.report().waited, 0ns);
  EXPECT_EQ(ring.report().handed_out, 2);
}

TEST(SlotRing, RefusesNoSlots) {
  EXPECT_THROW(SlotRing({.slots = 0}, {}), Error);
  EXPECT_THROW(SlotRing({.rows_per_piece = 0}, {}), Error);
}

TEST(SlotRing, LetsOnlyActiveWorkersTakePieces) {
  std::mutex mutex;
  std::set<int> seen;
  SlotRing ring({.slots = 4, .workers = 4}, {.rows = [](std::int64_t) { return 8; },
                                             .fill =
                                                 [&](const Piece& piece) {
                                                   const std::lock_guard lock(mutex);
                                                   seen.insert(piece.worker);
                                                 }});
  ring.set_active(1);
  ring.seek(0);
  for (int batch = 0; batch < 50; ++batch) {
    ASSERT_TRUE(ring.next());
    ring.release();
  }

  EXPECT_EQ(ring.report().active, 1U);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(seen, std::set<int>{0});
}

TEST(SlotRing, KeepsItsNumberOfActiveWorkersWithinItsThreads) {
  Table table(4);
  SlotRing ring({.slots = 4, .workers = 2}, table.work());
  SlotRing alone({.slots = 4, .workers = 0}, table.work());

  ring.set_active(0);
  EXPECT_EQ(ring.report().active, 1U);
  ring.set_active(9);
  EXPECT_EQ(ring.report().active, 2U);
  alone.set_active(3);
  EXPECT_EQ(alone.report().active, 0U);
}

TEST(SlotRing, CountsHowOftenItsReaderFoundEverythingReady) {
  Table table(4);
  SlotRing ring({.slots = 4, .workers = 1}, table.work());
  ring.seek(0);
  while (ring.report().ready < 4) std::this_thread::yield();  // ends: the slots are free

  (void)ring.next();

  EXPECT_EQ(ring.report().found_full, 1);
}

}  // namespace
}  // namespace yoke::feed
