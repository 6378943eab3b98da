#include "contract.hpp"

#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "values.hpp"

namespace yoke::shm::testing {
namespace {

using Bytes = std::vector<std::byte>;

// Empty, one, odd, not divisible by the ranks, more than staging holds at once.
constexpr std::size_t kCounts[] = {0, 1, 37, 5003};

// In a rank, which may be another process: EXPECT would not reach the test.
template <class... Where>
void require_equal(const Bytes& got, const Bytes& expected, Dtype dtype, const Where&... where) {
  for (std::size_t i = 0; i < expected.size(); i += size_of(dtype)) {
    if (std::memcmp(got.data() + i, expected.data() + i, size_of(dtype)) == 0) continue;
    std::ostringstream out;
    ((out << where << ' '), ...);
    out << "element " << i / size_of(dtype) << " is " << decode(dtype, got.data() + i) << ", not "
        << decode(dtype, expected.data() + i);
    throw std::runtime_error(out.str());
  }
}

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

template <class Check>
void for_all_kinds(const Check& check) {
  for (const Dtype dtype : kAllDtypes) {
    for (const Reduction reduction : kAllReductions) {
      if (reduction == Reduction::mean && !is_floating(dtype)) continue;
      for (const std::size_t count : kCounts) check(dtype, reduction, count);
    }
  }
}

// Element `i` of what rank `from` sends to rank `to`.
double sent_value(Dtype dtype, int from, int to, std::size_t i) {
  if (dtype == Dtype::boolean)
    return (static_cast<std::size_t>(from + to) + i) % 2 == 0 ? 1.0 : 0.0;
  return static_cast<double>((static_cast<std::size_t>(from * 31 + to * 7) + i) % 100);
}

Bytes sent(Dtype dtype, int from, int to, std::size_t count) {
  return encoded(dtype, count, [&](std::size_t i) { return sent_value(dtype, from, to, i); });
}

Bytes joined(const std::vector<Bytes>& blocks) {
  Bytes whole;
  for (const Bytes& block : blocks) whole.insert(whole.end(), block.begin(), block.end());
  return whole;
}

std::vector<float> random_floats(int rank, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::uniform_real_distribution<float> numbers(-1.0F, 1.0F);
  std::vector<float> values(count);
  for (float& value : values) value = numbers(random);
  return values;
}

std::string text_of(const void* data, std::size_t bytes) {
  return {static_cast<const char*>(data), bytes};
}

TEST_P(Contract, AllReduceInPlaceGivesTheFormulaForEveryTypeReductionAndCount) {
  const auto outcomes = run([](Team& team) -> std::string {
    const SharedBuffer buffer = team.allocate(5003 * 8);
    for_all_kinds([&](Dtype dtype, Reduction reduction, std::size_t count) {
      const Bytes mine = encoded(
          dtype, count, [&](std::size_t i) { return value_of(dtype, reduction, team.rank(), i); });
      std::copy(mine.begin(), mine.end(), buffer.data());

      team.wait(team.start_all_reduce(buffer, 0, {.count = count, .dtype = dtype}, reduction));

      const Bytes expected = encoded(dtype, count, [&](std::size_t i) {
        return reduced_value(dtype, reduction, team.size(), i);
      });
      require_equal(Bytes(buffer.data(), buffer.data() + mine.size()), expected, dtype, name(dtype),
                    name(reduction), count);
    });
    return {};
  });

  expect_all_well(outcomes);
}

TEST_P(Contract, AllReduceOfOwnMemoryGivesTheSame) {
  const auto outcomes = run([](Team& team) -> std::string {
    for_all_kinds([&](Dtype dtype, Reduction reduction, std::size_t count) {
      Bytes mine = encoded(
          dtype, count, [&](std::size_t i) { return value_of(dtype, reduction, team.rank(), i); });

      team.all_reduce(mine.data(), {.count = count, .dtype = dtype}, reduction);

      const Bytes expected = encoded(dtype, count, [&](std::size_t i) {
        return reduced_value(dtype, reduction, team.size(), i);
      });
      require_equal(mine, expected, dtype, name(dtype), name(reduction), count);
    });
    return {};
  });

  expect_all_well(outcomes);
}

TEST_P(Contract, ReduceScatterGivesEachRankItsShare) {
  const auto outcomes = run([](Team& team) -> std::string {
    const auto ranks = static_cast<std::size_t>(team.size());
    for_all_kinds([&](Dtype dtype, Reduction reduction, std::size_t count) {
      const Bytes mine = encoded(dtype, count * ranks, [&](std::size_t i) {
        return value_of(dtype, reduction, team.rank(), i);
      });
      Bytes share(count * size_of(dtype));

      team.reduce_scatter(mine.data(), share.data(), {.count = count, .dtype = dtype}, reduction);

      const std::size_t first = count * static_cast<std::size_t>(team.rank());
      const Bytes expected = encoded(dtype, count, [&](std::size_t i) {
        return reduced_value(dtype, reduction, team.size(), first + i);
      });
      require_equal(share, expected, dtype, name(dtype), name(reduction), count);
    });
    return {};
  });

  expect_all_well(outcomes);
}

TEST_P(Contract, BroadcastGivesEveryRankTheRootsElements) {
  const auto outcomes = run([](Team& team) -> std::string {
    for (const Dtype dtype : kAllDtypes) {
      for (const std::size_t count : kCounts) {
        for (int root = 0; root < team.size(); ++root) {
          Bytes mine = sent(dtype, team.rank(), 0, count);

          team.broadcast(mine.data(), {.count = count, .dtype = dtype}, root);

          require_equal(mine, sent(dtype, root, 0, count), dtype, name(dtype), count, root);
        }
      }
    }
    return {};
  });

  expect_all_well(outcomes);
}

TEST_P(Contract, AllGatherPutsTheRanksElementsInOrder) {
  const auto outcomes = run([](Team& team) -> std::string {
    for (const Dtype dtype : kAllDtypes) {
      for (const std::size_t count : kCounts) {
        std::vector<Bytes> blocks;
        for (int rank = 0; rank < team.size(); ++rank)
          blocks.push_back(sent(dtype, rank, 0, count));
        const Bytes mine = blocks[static_cast<std::size_t>(team.rank())];
        Bytes apart(mine.size() * blocks.size());
        Bytes in_place(mine.size() * blocks.size());
        std::byte* const place =
            in_place.data() + mine.size() * static_cast<std::size_t>(team.rank());
        std::copy(mine.begin(), mine.end(), place);

        team.all_gather(mine.data(), apart.data(), {.count = count, .dtype = dtype});
        team.all_gather(place, in_place.data(), {.count = count, .dtype = dtype});

        require_equal(apart, joined(blocks), dtype, name(dtype), count);
        require_equal(in_place, joined(blocks), dtype, name(dtype), count, "in place");
      }
    }
    return {};
  });

  expect_all_well(outcomes);
}

TEST_P(Contract, AllToAllTransposesTheRanksBlocks) {
  const auto outcomes = run([](Team& team) -> std::string {
    for (const Dtype dtype : kAllDtypes) {
      for (const std::size_t count : kCounts) {
        std::vector<Bytes> out;
        std::vector<Bytes> in;
        for (int peer = 0; peer < team.size(); ++peer) {
          out.push_back(sent(dtype, team.rank(), peer, count));
          in.push_back(sent(dtype, peer, team.rank(), count));
        }
        Bytes both = joined(out);
        Bytes apart(both.size());

        team.all_to_all(both.data(), apart.data(), {.count = count, .dtype = dtype});
        team.all_to_all(both.data(), both.data(), {.count = count, .dtype = dtype});

        require_equal(apart, joined(in), dtype, name(dtype), count);
        require_equal(both, joined(in), dtype, name(dtype), count, "in place");
      }
    }
    return {};
  });

  expect_all_well(outcomes);
}

TEST_P(Contract, MessagesArriveInTheOrderOfSendingWhateverTheirSize) {
  // More than a mailbox holds, in a ring of ranks; even ranks send first.
  constexpr std::size_t kSizes[] = {0, 1, 63, 70'000, 200'001};

  const auto outcomes = run([&](Team& team) -> std::string {
    const int next = (team.rank() + 1) % team.size();
    const int before = (team.rank() + team.size() - 1) % team.size();
    if (team.size() == 1) return {};
    for (const std::size_t count : kSizes) {
      Bytes got(count);
      const Bytes mine = sent(Dtype::uint8, team.rank(), next, count);
      const auto send = [&] {
        team.send(mine.data(), {.count = count, .dtype = Dtype::uint8}, next);
      };
      const auto receive = [&] {
        team.receive(got.data(), {.count = count, .dtype = Dtype::uint8}, before);
      };
      if (team.rank() % 2 == 0) send();
      receive();
      if (team.rank() % 2 == 1) send();
      require_equal(got, sent(Dtype::uint8, before, team.rank(), count), Dtype::uint8, count);
    }
    return {};
  });

  expect_all_well(outcomes);
}

TEST_P(Contract, SmallMessagesAreBufferedSoThatAllRanksMaySendFirst) {
  const auto outcomes = run([](Team& team) -> std::string {
    for (int peer = 0; peer < team.size(); ++peer) {
      for (std::int32_t number = 0; number < 100 && peer != team.rank(); ++number) {
        team.send(&number, {.count = 1, .dtype = Dtype::int32}, peer);
      }
    }
    for (int peer = 0; peer < team.size(); ++peer) {
      for (std::int32_t number = 0; number < 100 && peer != team.rank(); ++number) {
        std::int32_t got = -1;
        team.receive(&got, {.count = 1, .dtype = Dtype::int32}, peer);
        require(got == number, "message " + std::to_string(number) + " is " + std::to_string(got));
      }
    }
    return {};
  });

  expect_all_well(outcomes);
}

TEST_P(Contract, BarrierReturnsOnceEveryRankHasCome) {
  const SharedCounter come;

  const auto outcomes = run([&](Team& team) -> std::string {
    for (int round = 1; round <= 50; ++round) {
      ++*come;
      team.barrier();
      require(*come >= round * team.size(), "a rank was let through early");
    }
    return {};
  });

  expect_all_well(outcomes);
}

TEST_P(Contract, ASleepingRankIsWokenByTheLastToCome) {
  TeamOptions options = small_options();
  options.spin = std::chrono::microseconds(0);
  const auto begin = std::chrono::steady_clock::now();

  const auto outcomes = run(
      [](Team& team) -> std::string {
        for (int round = 0; round < 200; ++round) team.barrier();
        return {};
      },
      options);

  expect_all_well(outcomes);
  // Asleep until the next look at the peers (every 50 ms), 200 rounds would take 10 s.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST_P(Contract, MeanTakesScalesAndCountsAndDoesNotReadARankOfScaleZero) {
  const auto outcomes = run([](Team& team) -> std::string {
    const int last = team.size() - 1;
    const auto of_rank = [&](int rank) -> Contribution {
      if (rank == last && rank > 0) return {.scale = 0.0, .count = 5.0};
      return {.scale = rank + 1.0, .count = 2.0 * rank + 1.0};
    };
    double sum = 0.0;
    double count = 0.0;
    for (int rank = 0; rank < team.size(); ++rank) {
      sum += of_rank(rank).scale == 0.0 ? 0.0 : of_rank(rank).scale * (rank + 2.0);
      count += of_rank(rank).count;
    }
    const Contribution mine = of_rank(team.rank());
    const double value =
        mine.scale == 0.0 ? std::numeric_limits<double>::quiet_NaN() : team.rank() + 2.0;
    std::vector<double> values(777, value);

    team.all_reduce(values.data(), {.count = values.size(), .dtype = Dtype::float64},
                    Reduction::mean, mine);

    for (const double got : values) require(got == sum / count, std::to_string(got));
    return {};
  });

  expect_all_well(outcomes);
}

TEST_P(Contract, BytesBesideTheReducedOnesStayAsTheyAre) {
  const auto outcomes = run([](Team& team) -> std::string {
    const SharedBuffer buffer = team.allocate(1000);
    for (const std::size_t offset : {0U, 4U, 60U, 64U, 132U}) {
      for (const std::size_t count : {0U, 1U, 15U, 16U, 17U, 200U}) {
        std::memset(buffer.data(), 1, buffer.size());
        team.barrier();

        team.wait(team.start_all_reduce(buffer, offset, {.count = count, .dtype = Dtype::int32},
                                        Reduction::sum));

        for (std::size_t i = 0; i < buffer.size(); ++i) {
          const bool inside = i >= offset && i < offset + 4 * count;
          require(buffer.data()[i] == std::byte(inside ? team.size() : 1), std::to_string(i));
        }
      }
    }
    return {};
  });

  expect_all_well(outcomes);
}

TEST_P(Contract, ManyOperationsInFlightWithRanksOutOfStepAllCome) {
  constexpr std::size_t kOperations = 300;  // more than the ring of slots holds
  constexpr std::size_t kCount = 129;

  const auto outcomes = run([](Team& team) -> std::string {
    const SharedBuffer buffer = team.allocate(kOperations * kCount * sizeof(std::int32_t));
    auto* const values = reinterpret_cast<std::int32_t*>(buffer.data());
    for (std::size_t i = 0; i < kOperations * kCount; ++i) {
      values[i] = static_cast<std::int32_t>(i) + team.rank();
    }
    std::mt19937 random(static_cast<unsigned>(team.rank()));
    std::vector<Ticket> tickets;
    for (std::size_t operation = 0; operation < kOperations; ++operation) {
      tickets.push_back(team.start_all_reduce(buffer, operation * kCount * sizeof(std::int32_t),
                                              {.count = kCount, .dtype = Dtype::int32},
                                              Reduction::sum));
      for (auto yields = random() % 4; yields > 0; --yields) std::this_thread::yield();
      if (random() % 3 == 0) team.progress();
    }
    std::shuffle(tickets.begin(), tickets.end(), random);
    for (const Ticket ticket : tickets) team.wait(ticket);
    const int rank_sum = team.size() * (team.size() - 1) / 2;
    for (std::size_t i = 0; i < kOperations * kCount; ++i) {
      require(values[i] == static_cast<std::int32_t>(i) * team.size() + rank_sum,
              "element " + std::to_string(i) + " is " + std::to_string(values[i]));
    }
    return {};
  });

  expect_all_well(outcomes);
}

TEST_P(Contract, ARankRunsAheadByAsManyOperationsAsTheRingHoldsAndNoFurther) {
  constexpr int kInFlight = 128;
  const SharedCounter started;

  const auto outcomes = run([&](Team& team) -> std::string {
    const SharedBuffer buffer = team.allocate(2 * kInFlight * sizeof(float));
    const auto first =
        static_cast<int>(team.start_all_reduce(buffer, 0, {}, Reduction::sum).sequence);
    if (team.rank() != 0) {
      const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (*started < kInFlight - 1 && std::chrono::steady_clock::now() < limit) {
        std::this_thread::yield();
      }
      for (int i = 0; i < 100; ++i) std::this_thread::yield();  // time in which to do wrong
      require(*started == kInFlight - 1, std::to_string(*started) + " started");
    }
    Ticket last;
    for (int i = 1; i < 2 * kInFlight; ++i) {
      last = team.start_all_reduce(buffer, 0, {}, Reduction::sum);
      if (team.rank() == 0) ++*started;
    }
    team.wait(last);
    require(static_cast<int>(last.sequence) == first + 2 * kInFlight - 1, "a number was left out");
    return {};
  });

  expect_all_well(outcomes);
}

TEST_P(Contract, EveryRankAndEveryRunGetsTheBitsOfASumInRankOrder) {
  constexpr std::size_t kCount = 10'007;
  std::vector<float> mean = random_floats(0, kCount);
  for (int rank = 1; rank < size(); ++rank) {
    const std::vector<float> more = random_floats(rank, kCount);
    for (std::size_t i = 0; i < kCount; ++i) mean[i] += more[i];
  }
  for (float& value : mean) value /= static_cast<float>(size());
  const Body body = [](Team& team) {
    const SharedBuffer buffer = team.allocate(kCount * sizeof(float));
    std::vector<float> values = random_floats(team.rank(), kCount);
    std::memcpy(buffer.data(), values.data(), buffer.size());
    const Ticket ticket = team.start_all_reduce(buffer, 0, {.count = kCount}, Reduction::mean);
    team.all_reduce(values.data(), {.count = kCount}, Reduction::mean);
    require(team.done(ticket), "a later operation was done before an earlier one");
    return text_of(buffer.data(), buffer.size()) + text_of(values.data(), buffer.size());
  };

  const auto once = run(body);
  const auto again = run(body);

  expect_all_well(once);
  expect_all_well(again);
  const std::string expected = text_of(mean.data(), kCount * sizeof(float));
  for (int rank = 0; rank < size(); ++rank) {
    EXPECT_TRUE(once[static_cast<std::size_t>(rank)].result == expected + expected) << rank;
    EXPECT_TRUE(again[static_cast<std::size_t>(rank)].result == expected + expected) << rank;
  }
}

TEST_P(Contract, ABufferDroppedWhileItsOperationRunsIsKeptUntilTheEnd) {
  const auto outcomes = run([](Team& team) -> std::string {
    std::vector<Ticket> tickets;
    for (int round = 0; round < 20; ++round) {
      const SharedBuffer buffer = team.allocate(10'000);
      tickets.push_back(team.start_all_reduce(buffer, 0, {.count = 2500}, Reduction::sum));
    }
    for (const Ticket ticket : tickets) team.wait(ticket);
    return {};
  });

  expect_all_well(outcomes);
}

}  // namespace
}  // namespace yoke::shm::testing
