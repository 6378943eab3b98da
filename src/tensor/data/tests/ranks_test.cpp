// What the ranks of a run see together.

#include <algorithm>
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batches.hpp"
#include "errors.hpp"
#include "yoke/comm/local_ranks.hpp"
#include "yoke/data/synthetic.hpp"

namespace yoke::data {
namespace {

using feed::error_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::vector<Batch>> by_rank(int world_size, std::int64_t length,
                                        const DataLoaderOptions& options, std::int64_t epoch = 1) {
  std::vector<std::vector<Batch>> all;
  for (int rank = 0; rank < world_size; ++rank) {
    DataLoader loader(Synthetic({.shape = {4}, .length = length}),
                      Placement{.rank = rank, .world_size = world_size}, options);
    all.push_back(batches_of(loader, epoch));
  }
  return all;
}

TEST(Ranks, SeeTogetherInEachStepWhatOneRankSeesWithTheJoinedBatch) {
  for (const int world_size : {1, 2, 3, 4, 5}) {
    for (const std::int64_t length : {1, 7, 30, 61}) {
      for (const bool shuffle : {false, true}) {
        const auto one = by_rank(
            1, length, {.batch_size = 3 * world_size, .shuffle = shuffle, .num_workers = 0});

        const auto ranks =
            by_rank(world_size, length, {.batch_size = 3, .shuffle = shuffle, .num_workers = 0});

        for (std::size_t step = 0; step < one.front().size(); ++step) {
          std::vector<at::Tensor> inputs;
          std::vector<at::Tensor> targets;
          for (const auto& rank : ranks) {
            ASSERT_EQ(rank.size(), one.front().size());
            inputs.push_back(rank[step].input);
            targets.push_back(rank[step].target);
            EXPECT_EQ(rank[step].global_rows, one.front()[step].rows());
          }
          EXPECT_TRUE(at::equal(at::cat(inputs), one.front()[step].input));
          EXPECT_TRUE(at::equal(at::cat(targets), one.front()[step].target));
        }
      }
    }
  }
}

TEST(Ranks, ShareTheLastStepAsEvenlyAsCanBe) {
  for (const int world_size : {2, 3, 5}) {
    for (std::int64_t length = 1; length <= 4 * world_size; ++length) {
      const auto ranks = by_rank(world_size, length, {.batch_size = 2, .num_workers = 0});

      std::vector<std::int64_t> last;
      for (const auto& rank : ranks) last.push_back(rank.back().rows());
      EXPECT_LE(std::ranges::max(last) - std::ranges::min(last), 1) << world_size << ' ' << length;
    }
  }
}

TEST(Ranks, GetABatchOfNoRowsWhereTheyHaveRunDry) {
  const auto ranks = by_rank(4, 10, {.batch_size = 2, .shuffle = false});

  std::vector<std::int64_t> last;
  for (const auto& rank : ranks) last.push_back(rank.back().rows());

  EXPECT_THAT(last, ElementsAre(1, 1, 0, 0));
  EXPECT_EQ(ranks[3].back().input.sizes(), at::IntArrayRef({0, 4}));
  EXPECT_EQ(ranks[3].back().target.sizes(), at::IntArrayRef({0}));
  EXPECT_EQ(ranks[3].back().global_rows, 2);
}

TEST(Ranks, EvaluateEachSampleOnceInOrder) {
  const DataLoaderOptions options =
      evaluation({.batch_size = 3, .shuffle = true, .drop_last = true, .torch_compat = true});

  const auto ranks = by_rank(3, 20, options);

  std::vector<std::int64_t> seen;
  for (std::size_t step = 0; step < ranks.front().size(); ++step) {
    for (const auto& rank : ranks) {
      seen.insert(seen.end(), rank[step].indices.begin(), rank[step].indices.end());
    }
  }
  ASSERT_EQ(seen.size(), 20U);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(seen[i], static_cast<std::int64_t>(i));
}

TEST(Ranks, B056TakeTheSamplesThatPyTorchTakesWithTorchCompat) {
  const DataLoaderOptions options{.batch_size = 4, .seed = 0, .torch_compat = true};

  const auto first = by_rank(2, 8, options, 0);
  const auto second = by_rank(2, 8, options, 1);

  EXPECT_THAT(indices_of(first[0]), ElementsAre(4, 7, 2, 1));
  EXPECT_THAT(indices_of(first[1]), ElementsAre(0, 3, 5, 6));
  EXPECT_THAT(indices_of(second[0]), ElementsAre(5, 2, 7, 1));
  EXPECT_THAT(indices_of(second[1]), ElementsAre(4, 6, 3, 0));
}

TEST(Ranks, B057RepeatSamplesWithTorchCompatAsPyTorchDoes) {
  const auto ranks = by_rank(7, 3, {.batch_size = 1, .shuffle = false, .torch_compat = true});

  std::vector<std::int64_t> taken;
  for (const auto& rank : ranks) taken.push_back(indices_of(rank).front());

  EXPECT_THAT(taken, ElementsAre(0, 1, 2, 0, 1, 2, 0));
}

TEST(Ranks, LoadThroughAWorld) {
  std::array<std::vector<std::int64_t>, 3> seen;

  comm::run_local_ranks(3, [&](comm::World& world) {
    DataLoader loader(Synthetic({.length = 50}), world, {.batch_size = 4, .seed = 7});
    seen[static_cast<std::size_t>(world.rank())] = indices_of(batches_of(loader, 0));
    EXPECT_EQ(loader.placement().world_size, 3);
  });

  std::vector<std::int64_t> all;
  for (const auto& indices : seen) all.insert(all.end(), indices.begin(), indices.end());
  std::ranges::sort(all);
  ASSERT_EQ(all.size(), 50U);
  for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ(all[i], static_cast<std::int64_t>(i));
}

TEST(Ranks, B058AreRefusedWithDifferentSeeds) {
  const Error error = error_of([] {
    comm::run_local_ranks(2, [](comm::World& world) {
      DataLoader(Synthetic({.length = 8}), world,
                 {.batch_size = 1, .seed = 40 + static_cast<std::uint64_t>(world.rank())});
    });
  });

  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("seed"), HasSubstr("40 on rank 0"), HasSubstr("41 on rank 1")));
}

TEST(Ranks, B058AreRefusedWithDifferentData) {
  const Error error = error_of([] {
    comm::run_local_ranks(2, [](comm::World& world) {
      DataLoader(Synthetic({.length = 8, .seed = static_cast<std::uint64_t>(world.rank())}), world,
                 {.batch_size = 1});
    });
  });

  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_THAT(error.message(), HasSubstr("fingerprint"));
}

TEST(Ranks, AreAllToldWhereTheOptionsOfOneCannotBe) {
  const Error error = error_of([] {
    comm::run_local_ranks(2, [](comm::World& world) {
      DataLoader(Synthetic({.length = 8}), world, {.batch_size = 4 - 4 * world.rank()});
    });
  });

  EXPECT_THAT(error.message(), AllOf(HasSubstr("batch size"), HasSubstr("0 on rank 1")));
}

}  // namespace
}  // namespace yoke::data
