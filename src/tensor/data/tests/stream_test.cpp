#include "yoke/data/stream.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "errors.hpp"
#include "yoke/comm/local_ranks.hpp"

namespace yoke::data {
namespace {

using feed::error_of;
using ::testing::HasSubstr;
using Numbers = std::vector<std::int64_t>;

// The numbers 0 to length - 1; the first part may be cut short.
struct Counting : Stream {
  explicit Counting(std::int64_t length_of_all) : length(length_of_all) {}
  [[nodiscard]] Reader open(const StreamPart& part) const override {
    return [next = std::int64_t{part.index}, part, this]() mutable -> std::optional<NamedTensors> {
      if (next >= length) return std::nullopt;
      if (next == bad) throw std::runtime_error("the wire was cut");
      const at::Tensor number = at::full({}, std::exchange(next, next + part.count), at::kLong);
      return NamedTensors{{"input", number}};
    };
  }
  std::int64_t length;
  std::int64_t bad = -1;
};

struct Walk {
  Numbers numbers;
  Numbers rows;
  Numbers global_rows;
};

Walk walk(StreamLoader& loader, std::int64_t epoch) {
  Walk seen;
  for (const Batch& batch : loader.epoch(epoch)) {
    seen.rows.push_back(batch.rows());
    seen.global_rows.push_back(batch.global_rows);
    if (batch.rows() == 0) continue;
    const at::Tensor input = batch.input.contiguous();
    const auto* first = input.const_data_ptr<std::int64_t>();
    seen.numbers.insert(seen.numbers.end(), first, first + input.numel());
  }
  return seen;
}

// What each rank sees in the epochs 0, 1, ...
std::vector<std::vector<Walk>> by_rank(int ranks, int epochs, std::int64_t length,
                                       const StreamLoaderOptions& options) {
  std::vector<std::vector<Walk>> seen(static_cast<std::size_t>(ranks));
  comm::run_local_ranks(ranks, [&](comm::World& world) {
    StreamLoader loader(std::make_shared<const Counting>(length), world, options);
    for (int epoch = 0; epoch < epochs; ++epoch)
      seen[static_cast<std::size_t>(world.rank())].push_back(walk(loader, epoch));
  });
  return seen;
}

Numbers all_of(const std::vector<std::vector<Walk>>& ranks, std::size_t epoch) {
  Numbers all;
  for (const auto& rank : ranks) {
    all.insert(all.end(), rank[epoch].numbers.begin(), rank[epoch].numbers.end());
  }
  std::ranges::sort(all);
  return all;
}

Numbers up_to(std::int64_t length) {
  Numbers numbers(static_cast<std::size_t>(length));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST(Streams, B061GiveEachItemOncePerEpochOverAllRanksInANewOrder) {
  const auto ranks = by_rank(2, 2, 100, {.batch_size = 8, .shuffle_buffer = 20, .seed = 1});

  for (const std::size_t epoch : {0U, 1U}) EXPECT_EQ(all_of(ranks, epoch), up_to(100));
  for (const auto& rank : ranks) EXPECT_NE(rank[0].numbers, rank[1].numbers);
  EXPECT_EQ(ranks[0][0].numbers.size(), 50U);
}

TEST(Streams, EndTogetherHoweverLongTheyAre) {
  for (const int ranks : {1, 2, 3}) {
    for (const std::int64_t length : {0, 1, 2, 7, 12, 13}) {
      const auto seen = by_rank(ranks, 2, length, {.batch_size = 2});

      for (const std::size_t epoch : {0U, 1U}) {
        EXPECT_EQ(all_of(seen, epoch), up_to(length));
        for (const auto& rank : seen)
          EXPECT_EQ(rank[epoch].global_rows, seen[0][epoch].global_rows);
      }
    }
  }
}

TEST(Streams, GiveTheSameAgain) {
  const StreamLoaderOptions options{.batch_size = 3, .shuffle_buffer = 7, .seed = 4};
  const auto first = by_rank(2, 3, 40, options);
  const auto again = by_rank(2, 3, 40, options);

  for (const std::size_t rank : {0U, 1U}) {
    for (const std::size_t epoch : {0U, 1U, 2U})
      EXPECT_EQ(first[rank][epoch].numbers, again[rank][epoch].numbers);
  }
}

TEST(Streams, BeginAnEpochAnewAfterABreak) {
  comm::run_local_ranks(1, [](comm::World& world) {
    StreamLoader loader(std::make_shared<const Counting>(20), world,
                        {.batch_size = 4, .shuffle_buffer = 6});
    const Numbers whole = walk(loader, 1).numbers;
    for (int taken = 0; taken < 5; ++taken) {
      auto epoch = loader.epoch(1);
      for (int i = 0; i < taken; ++i) (void)epoch.next();

      EXPECT_EQ(walk(loader, 1).numbers, whole) << taken;
    }
  });
}

TEST(Streams, ThrowWhatTheirReaderThrewAfterTheBatchesBeforeIt) {
  comm::run_local_ranks(1, [](comm::World& world) {
    auto counting = std::make_shared<Counting>(20);
    counting->bad = 9;
    StreamLoader loader(counting, world, {.batch_size = 4});

    int batches = 0;
    EXPECT_THROW(
        {
          for (const Batch& batch : loader.epoch(0)) batches += batch.rows() == 4 ? 1 : 0;
        },
        std::runtime_error);
    EXPECT_EQ(batches, 2);
  });
}

TEST(Streams, RefuseRanksThatDiffer) {
  const Error error = error_of([] {
    comm::run_local_ranks(2, [](comm::World& world) {
      StreamLoader(std::make_shared<const Counting>(20), world, {.batch_size = 4 + world.rank()});
    });
  });

  EXPECT_THAT(error.message(), HasSubstr("batch size"));
}

}  // namespace
}  // namespace yoke::data
