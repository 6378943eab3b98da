#include <array>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../memory.hpp"
#include "ranks.hpp"

namespace yoke::shm {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using testing::expect_all_well;
using ::testing::HasSubstr;
using testing::Outcome;
using testing::run_threads;
using testing::small_options;

// A wait that must end by itself, and not at this limit.
constexpr auto kFar = 20s;

TeamOptions options_with(std::chrono::milliseconds timeout) {
  TeamOptions options = small_options();
  options.timeout = timeout;
  return options;
}

// A gate between ranks that are threads.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kFar, [&] { return open_; })) throw Error(Code::timeout, "gate");
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_{false};
};

void expect_error(const Outcome& outcome, Code code, const ::testing::Matcher<std::string>& text) {
  ASSERT_TRUE(outcome.error.has_value());
  EXPECT_EQ(outcome.error->code(), code) << outcome.error->what();
  EXPECT_THAT(outcome.error->message(), text);
}

/// Runs two ranks that call different things; both must tell so, at once.
void expect_mismatch(const std::function<void(Team&)>& zero, const std::function<void(Team&)>& one,
                     const std::string& text) {
  const auto begin = std::chrono::steady_clock::now();

  const auto outcomes = run_threads(2, [&](Team& team) -> std::string {
    team.barrier();
    (team.rank() == 0 ? zero : one)(team);
    return {};
  });

  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  for (const Outcome& outcome : outcomes) {
    expect_error(outcome, Code::invalid_argument,
                 AllOf(HasSubstr("operation #2"), HasSubstr(text)));
  }
}

auto all_reduce_of(Elements elements, Reduction reduction = Reduction::sum) {
  return [=](Team& team) {
    std::array<double, 256> values{};
    team.all_reduce(values.data(), elements, reduction);
  };
}

TEST(TeamMismatch, B017DifferentShapesAreShownOfBothRanks) {
  expect_mismatch(all_reduce_of({.count = 200, .shape = "20x10"}),
                  all_reduce_of({.count = 220, .shape = "20x11"}),
                  "rank 0: all-reduce 20x10 float32, rank 1: all-reduce 20x11 float32; "
                  "shapes differ (20x10 vs 20x11)");
}

TEST(TeamMismatch, B017DifferentOperationsAreShownOfBothRanks) {
  expect_mismatch(
      all_reduce_of({.count = 200, .shape = "20x10"}),
      [](Team& team) {
        std::array<float, 200> values{};
        team.broadcast(values.data(), {.count = 200, .shape = "20x10"}, 1);
      },
      "rank 0: all-reduce 20x10 float32, rank 1: broadcast 20x10 float32 from rank 1; "
      "operations differ (all-reduce vs broadcast)");
}

TEST(TeamMismatch, EachOtherAspectIsNamed) {
  const auto reference = all_reduce_of({.count = 100});
  expect_mismatch(reference, all_reduce_of({.count = 100, .dtype = Dtype::float64}),
                  "dtypes differ (float32 vs float64)");
  expect_mismatch(reference, all_reduce_of({.count = 101}),
                  "numbers of elements differ (100 vs 101)");
  expect_mismatch(reference, all_reduce_of({.count = 100}, Reduction::mean),
                  "reductions differ (sum vs mean)");
  expect_mismatch(reference, all_reduce_of({.count = 100, .shape = "10x10"}),
                  "shapes differ (100 vs 10x10)");
  expect_mismatch(
      reference, [](Team& team) { team.barrier(); },
      "rank 1: barrier; operations differ (all-reduce vs barrier)");
  const auto broadcast_from = [](int root) {
    return [root](Team& team) {
      int value = 0;
      team.broadcast(&value, {.count = 1, .dtype = Dtype::int32}, root);
    };
  };
  expect_mismatch(broadcast_from(0), broadcast_from(1), "roots differ (0 vs 1)");
}

TEST(TeamMismatch, ShapesThatDifferBehindTheKeptPartOfTheirTextAreFound) {
  const std::string same(100, '1');
  const std::string one = same + "x1";
  const std::string other = same + "x2";

  expect_mismatch(all_reduce_of({.count = 1, .shape = one}),
                  all_reduce_of({.count = 1, .shape = other}), "shapes differ");
}

TEST(TeamMismatch, DifferentPlacesInBuffersAreNamed) {
  const auto outcomes = run_threads(2, [](Team& team) -> std::string {
    const SharedBuffer buffer = team.allocate(1024);
    const std::size_t offset = team.rank() == 0 ? 0 : 64;
    team.wait(team.start_all_reduce(buffer, offset, {.count = 4}, Reduction::sum));
    return {};
  });

  for (const Outcome& outcome : outcomes) {
    expect_error(outcome, Code::invalid_argument, HasSubstr("byte offsets differ (0 vs 64)"));
  }
}

TEST(TeamMismatch, DifferentSizesOfAnAllocationAreNamed) {
  const auto outcomes = run_threads(2, [](Team& team) -> std::string {
    const SharedBuffer buffer = team.allocate(team.rank() == 0 ? 1000 : 2000);
    return {};
  });

  for (const Outcome& outcome : outcomes) {
    expect_error(outcome, Code::invalid_argument,
                 HasSubstr("rank 0: allocate 1000 B, rank 1: allocate 2000 B; shapes differ"));
  }
}

TEST(TeamMismatch, TwoRanksTellItWhileTheThirdHasNotCome) {
  Gate two_told;
  std::atomic<int> told{0};

  const auto outcomes = run_threads(3, [&](Team& team) -> std::string {
    if (team.rank() == 2) two_told.pass();
    const std::size_t count = team.rank() == 1 ? 11 : 10;
    try {
      all_reduce_of({.count = count})(team);
    } catch (const Error&) {
      if (++told == 2) two_told.open();
      throw;
    }
    return {};
  });

  for (const Outcome& outcome : outcomes) {
    expect_error(outcome, Code::invalid_argument,
                 HasSubstr("numbers of elements differ (10 vs 11)"));
  }
}

TEST(TeamMismatch, AReceiverTellsWhatTheSenderSentInstead) {
  const auto outcomes = run_threads(2, [](Team& team) -> std::string {
    std::array<float, 12> values{};
    if (team.rank() == 0) {
      team.send(values.data(), {.count = 10, .shape = "2x5"}, 1);
      team.barrier();
    } else {
      team.receive(values.data(), {.count = 12, .shape = "3x4"}, 0);
    }
    return {};
  });

  expect_error(outcomes[1], Code::invalid_argument,
               HasSubstr("receive #1 from rank 0: it sent 2x5 float32, not 3x4 float32"));
  expect_error(outcomes[0], Code::peer_lost, HasSubstr("rank 1 left: rank 1: receive #1"));
}

TEST(TeamTimeout, NamesOperationSizeTimeAndExactlyTheRanksThatDidNotCome) {
  Gate over;

  const auto outcomes = run_threads(
      4,
      [&](Team& team) -> std::string {
        team.barrier();
        if (team.rank() == 1 || team.rank() == 3) {
          over.pass();
          return {};
        }
        try {
          all_reduce_of({.count = 200, .shape = "20x10"})(team);
        } catch (const Error&) {
          if (team.rank() == 0) over.open();
          throw;
        }
        return {};
      },
      options_with(150ms));

  expect_error(
      outcomes[0], Code::timeout,
      AllOf(
          HasSubstr("rank 0: all-reduce #2 (20x10 float32, 800 B): no answer from"),
          HasSubstr(
              "rank 1 (did not come; its last was #1), rank 3 (did not come; its last was #1) in "),
          ::testing::EndsWith(" ms")));
  EXPECT_THAT(outcomes[0].error->message(), ::testing::Not(HasSubstr("rank 2")));
}

TEST(TeamTimeout, NamesARankThatCameButDoesNotWork) {
  Gate over;

  const auto outcomes = run_threads(
      2,
      [&](Team& team) -> std::string {
        const SharedBuffer buffer = team.allocate(64);
        const Ticket ticket = team.start_all_reduce(buffer, 0, {.count = 16}, Reduction::sum);
        if (team.rank() == 1) {
          over.pass();
          return {};
        }
        try {
          team.wait(ticket);
        } catch (const Error&) {
          over.open();
          throw;
        }
        return {};
      },
      options_with(150ms));

  expect_error(outcomes[0], Code::timeout,
               HasSubstr("no answer from rank 1 (came, but has not finished)"));
}

TEST(TeamTimeout, NamesTheMessageThatIsNotReceived) {
  Gate over;

  const auto outcomes = run_threads(
      2,
      [&](Team& team) -> std::string {
        if (team.rank() == 1) {
          over.pass();
          return {};
        }
        const std::vector<float> values(100'000);
        try {
          team.send(values.data(), {.count = values.size()}, 1);
        } catch (const Error&) {
          over.open();
          throw;
        }
        return {};
      },
      options_with(150ms));

  expect_error(outcomes[0], Code::timeout,
               HasSubstr("rank 0: send #1 to rank 1 (100000 float32): no answer from rank 1"));
}

TEST(TeamLeft, ARankThatLeavesIsNamedToThoseWhoWait) {
  const auto begin = std::chrono::steady_clock::now();

  const auto outcomes = run_threads(3, [](Team& team) -> std::string {
    team.barrier();
    if (team.rank() != 1) team.barrier();
    return {};
  });

  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  EXPECT_FALSE(outcomes[1].error.has_value());
  for (const int rank : {0, 2}) {
    expect_error(outcomes[static_cast<std::size_t>(rank)], Code::peer_lost,
                 HasSubstr("barrier #2: rank 1 left"));
  }
}

TEST(TeamLeft, TheReasonGivenToAbortReachesTheOthers) {
  const auto outcomes = run_threads(2, [](Team& team) -> std::string {
    if (team.rank() == 0) {
      team.barrier();
    } else {
      team.abort("bad label 11 in sample 42");
    }
    return {};
  });

  expect_error(outcomes[0], Code::peer_lost,
               HasSubstr("barrier #1: rank 1 left: bad label 11 in sample 42"));
}

TEST(TeamLeft, ARankThatLeftForItsOwnReasonIsNamedBeforeThoseThatFollowed) {
  Gate followed;

  const auto outcomes = run_threads(3, [&](Team& team) -> std::string {
    if (team.rank() == 2) {
      team.abort("out of memory");
      return {};
    }
    if (team.rank() == 0) followed.pass();
    try {
      team.barrier();
    } catch (const Error&) {
      followed.open();
      throw;
    }
    return {};
  });

  expect_error(outcomes[0], Code::peer_lost, HasSubstr("rank 2 left: out of memory"));
}

TEST(TeamLeft, WhatARankDidBeforeItLeftStillCounts) {
  Gate left;

  const auto outcomes = run_threads(2, [&](Team& team) -> std::string {
    std::int32_t value = 7;
    const Elements one{.count = 1, .dtype = Dtype::int32};
    if (team.rank() == 0) {
      team.send(&value, one, 1);
      team.abort("done");
      left.open();
      return {};
    }
    left.pass();
    value = 0;
    team.receive(&value, one, 0);
    return std::to_string(value);
  });

  expect_all_well(outcomes);
  EXPECT_EQ(outcomes[1].result, "7");
}

TEST(TeamLeft, AbortFromAnotherThreadEndsAWaitOfThisRank) {
  const auto begin = std::chrono::steady_clock::now();

  const auto outcomes = run_threads(2, [](Team& team) -> std::string {
    team.barrier();
    if (team.rank() == 1) {
      team.barrier();
      return {};
    }
    std::thread watchdog([&] { team.abort("watchdog"); });
    try {
      std::int32_t value = 0;
      team.receive(&value, {.count = 1, .dtype = Dtype::int32}, 1);
    } catch (const Error&) {
      watchdog.join();
      throw;
    }
    watchdog.join();
    return {};
  });

  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  expect_error(outcomes[0], Code::peer_lost,
               HasSubstr("rank 0: this rank left its team: watchdog"));
  expect_error(outcomes[1], Code::peer_lost, HasSubstr("rank 0 left: watchdog"));
}

TEST(TeamErrors, EveryCallAfterTheFirstErrorRepeatsIt) {
  const auto outcomes = run_threads(2, [](Team& team) -> std::string {
    const SharedBuffer buffer = team.allocate(64);
    const Ticket ticket = team.start_all_reduce(buffer, 0, {.count = 1}, Reduction::sum);
    if (team.rank() == 1) return {};
    std::string first;
    std::string repeated;
    float value = 0;
    const auto keep = [&](const std::function<void()>& call) {
      try {
        call();
        repeated += "no error";
      } catch (const Error& error) {
        if (first.empty()) first = error.what();
        if (error.what() != first) repeated += error.what();
      }
    };
    keep([&] { team.wait(ticket); });
    keep([&] { team.wait(ticket); });
    keep([&] { team.progress(); });
    keep([&] { static_cast<void>(team.done(ticket)); });
    keep([&] { team.barrier(); });
    keep([&] { team.broadcast(&value, {.count = 1}, 0); });
    keep([&] { team.send(&value, {.count = 1}, 1); });
    keep([&] { team.receive(&value, {.count = 1}, 1); });
    keep([&] { static_cast<void>(team.allocate(8)); });
    keep([&] { team.start_all_reduce(buffer, 0, {.count = 1}, Reduction::sum); });
    return first + "|" + repeated;
  });

  EXPECT_THAT(outcomes[0].result, HasSubstr("(1 float32, 4 B): rank 1 left"));
  EXPECT_THAT(outcomes[0].result, ::testing::EndsWith("|"));
}

TEST(TeamErrors, ARefusedArgumentLeavesTheTeamUsable) {
  const auto outcomes = run_threads(2, [](Team& team) -> std::string {
    const SharedBuffer buffer = team.allocate(64);
    std::int32_t value = team.rank();
    const Elements one{.count = 1, .dtype = Dtype::int32};
    const auto refused = [&](const std::function<void()>& call, const std::string& text) {
      try {
        call();
      } catch (const Error& error) {
        const bool fits = error.code() == Code::invalid_argument &&
                          error.message().find(text) != std::string::npos;
        if (!fits) throw;
        return;
      }
      throw Error(Code::internal, "not refused: " + text);
    };
    refused([&] { team.all_reduce(&value, one, Reduction::mean); }, "mean of int32");
    refused([&] { team.broadcast(&value, one, 2); }, "broadcast from rank 2: the team has 2 ranks");
    refused([&] { team.send(&value, one, -1); }, "send to rank -1");
    refused([&] { team.receive(&value, one, team.rank()); }, "receive from itself");
    refused([&] { team.start_all_reduce(buffer, 0, {.count = 17}, Reduction::sum); },
            "lies outside");
    refused([&] { team.start_all_reduce(buffer, 2, {.count = 1}, Reduction::sum); }, "not aligned");
    refused([&] { team.start_all_reduce({}, 0, {.count = 1}, Reduction::sum); }, "a buffer of 0 B");
    Team other({}, {});
    const SharedBuffer strange = other.allocate(64);
    refused([&] { team.start_all_reduce(strange, 0, one, Reduction::sum); }, "another team");
    refused([&] { team.wait({999}); }, "wait for operation #999");
    team.all_reduce(&value, one, Reduction::sum);
    return std::to_string(value);
  });

  expect_all_well(outcomes);
  EXPECT_EQ(outcomes[0].result, "1");
  EXPECT_EQ(outcomes[1].result, "1");
}

TEST(TeamErrors, AnAllocationThatTheMachineCannotHoldFailsOnAllAndLeavesTheTeamUsable) {
  // So large that the system would refuse it too: a broken check must not fill the machine.
  constexpr std::size_t kBytes = std::size_t{1} << 63;

  const auto outcomes = run_threads(2, [](Team& team) -> std::string {
    std::string refused;
    try {
      static_cast<void>(team.allocate(kBytes));
    } catch (const Error& error) {
      refused = std::string(name(error.code())) + ": " + error.message();
    }
    team.barrier();
    return refused;
  });

  expect_all_well(outcomes);
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.result, AllOf(HasSubstr("io: rank 0: allocate "), HasSubstr("available")));
  }
}

TEST(RequireMemory, CountsTheShareOfEveryRank) {
  EXPECT_NO_THROW(require_memory(100, 4, 400));
  EXPECT_THROW(require_memory(101, 4, 400), Error);
  EXPECT_NO_THROW(require_memory(0, 4, 0));
  EXPECT_THROW(require_memory(std::size_t{1} << 63, 4, std::uint64_t{1} << 40), Error);
}

TEST(AvailableMemory, IsMoreThanNothingAndLessThanEverything) {
  EXPECT_GT(available_memory(), std::uint64_t{1} << 20);
  EXPECT_LT(available_memory(), std::uint64_t{1} << 60);
}

TEST(TeamMeet, ASegmentThatCannotBeReachedIsUnsupportedOnEveryRank) {
  // Rank 1 claims to be process 1, as the process of another namespace would seem to be.
  const auto outcomes = run_threads(
      3, [](Team&) { return std::string(); }, small_options(),
      [](int rank, std::string said) {
        if (rank != 1 || !said.starts_with("yoke-shm")) return said;
        std::vector<std::string> words;
        for (std::size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
          end = said.find(' ', at);
          words.push_back(said.substr(at, end - at));
        }
        words[5] = "1";
        std::string changed;
        for (const std::string& word : words) changed += changed.empty() ? word : " " + word;
        return changed;
      });

  for (const Outcome& outcome : outcomes) {
    expect_error(outcome, Code::unsupported,
                 AllOf(HasSubstr("share memory of 3 ranks: rank 0:"), HasSubstr("/proc/1/fd/")));
    EXPECT_THAT(outcome.error->hint(), HasSubstr("use another backend"));
  }
}

TEST(TeamMeet, ARankThatCouldNotMakeItsSegmentIsUnsupportedOnEveryRank) {
  const auto outcomes = run_threads(
      2, [](Team&) { return std::string(); }, small_options(),
      [](int rank, std::string said) {
        return rank == 1 && said.starts_with("yoke-shm") ? "too many open files" : said;
      });

  for (const Outcome& outcome : outcomes) {
    expect_error(outcome, Code::unsupported, HasSubstr("meet rank 1: too many open files"));
  }
}

TEST(TeamMeet, RanksThatWereToldDifferentSizesAreRefusedOnEveryRank) {
  const auto outcomes = run_threads(
      2, [](Team&) { return std::string(); }, small_options(),
      [](int rank, std::string said) {
        const std::size_t place = said.find(" 2 16384 ");
        if (rank == 0 && place != std::string::npos) said.replace(place, 3, " 3 ");
        return said;
      });

  for (const Outcome& outcome : outcomes) {
    expect_error(outcome, Code::unsupported, HasSubstr("says rank 0 of 3"));
  }
}

TEST(TeamMeet, ATeamOfOneNeedsNoExchange) {
  Team team({}, {});
  float value = 3.0F;

  team.all_reduce(&value, {.count = 1}, Reduction::mean);

  EXPECT_EQ(value, 3.0F);
}

TEST(TeamMeet, WrongOptionsAreRefused) {
  EXPECT_THROW(Team({}, {.rank = 0, .size = 2}), Error);
  EXPECT_THROW(Team({}, {.rank = 1, .size = 1}), Error);
  EXPECT_THROW(Team({}, {.rank = 0, .size = 0}), Error);
  EXPECT_THROW(Team({}, {.staging_bytes = 10}), Error);
}

std::size_t open_files() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(TeamMeet, NoDescriptorStaysOpenWhileATeamLives) {
  const std::size_t before = open_files();
  Team team({}, {});

  const SharedBuffer buffer = team.allocate(100);

  EXPECT_EQ(open_files(), before);
}

TEST(SharedBuffer, OutlivesItsTeamAndStartsAsZeros) {
  SharedBuffer buffer;
  {
    Team team({}, {});
    buffer = team.allocate(100);
  }

  EXPECT_EQ(buffer.size(), 100U);
  EXPECT_EQ(buffer.data()[99], std::byte{0});
  buffer.data()[99] = std::byte{1};
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 4096, 0U);
}

}  // namespace
}  // namespace yoke::shm
