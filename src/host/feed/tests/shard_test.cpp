#include "yoke/feed/shard.hpp"

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "errors.hpp"
#include "yoke/feed/order.hpp"

namespace yoke::feed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Indices = std::vector<std::int64_t>;

Indices step_of(const Plan& plan, std::int64_t step) {
  Indices positions;
  for (std::int64_t row = 0; row < plan.rows(step); ++row) {
    positions.push_back(plan.position(step, row));
  }
  return positions;
}

Indices epoch_of(const PlanOptions& options) {
  const Plan plan(options);
  Indices positions;
  for (std::int64_t step = 0; step < plan.steps(); ++step) {
    for (const std::int64_t position : step_of(plan, step)) positions.push_back(position);
  }
  return positions;
}

Indices counting(std::int64_t first, std::int64_t end) {
  Indices positions;
  for (std::int64_t i = first; i < end; ++i) positions.push_back(i);
  return positions;
}

struct Shape {
  std::int64_t length;
  std::int64_t batch_size;
  int world_size;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const std::int64_t length : {1, 2, 3, 7, 10, 63, 64, 65, 1000}) {
    for (const std::int64_t batch_size : {1, 3, 8}) {
      for (const int world_size : {1, 2, 3, 4, 5}) all.push_back({length, batch_size, world_size});
    }
  }
  return all;
}

TEST(Plan, HandsOutEverySampleOnceOverAllRanksInEquallyManySteps) {
  for (const auto& [length, batch_size, world_size] : shapes()) {
    Indices seen;
    std::vector<std::int64_t> steps;

    for (int rank = 0; rank < world_size; ++rank) {
      const PlanOptions options{
          .length = length, .batch_size = batch_size, .rank = rank, .world_size = world_size};
      steps.push_back(Plan(options).steps());
      const Indices mine = epoch_of(options);
      seen.insert(seen.end(), mine.begin(), mine.end());
    }

    std::ranges::sort(seen);
    EXPECT_EQ(seen, counting(0, length)) << length << ' ' << batch_size << ' ' << world_size;
    const std::int64_t global_batch = batch_size * world_size;
    EXPECT_THAT(steps, ::testing::Each((length + global_batch - 1) / global_batch));
  }
}

TEST(Plan, ShowsTheRanksTogetherInEachStepWhatOneRankWithTheJoinedBatchSees) {
  for (const auto& [length, batch_size, world_size] : shapes()) {
    const Plan joined({.length = length, .batch_size = batch_size * world_size});

    for (std::int64_t step = 0; step < joined.steps(); ++step) {
      Indices together;
      std::vector<std::int64_t> rows;
      for (int rank = 0; rank < world_size; ++rank) {
        const Plan plan(
            {.length = length, .batch_size = batch_size, .rank = rank, .world_size = world_size});
        const Indices mine = step_of(plan, step);
        together.insert(together.end(), mine.begin(), mine.end());
        rows.push_back(plan.rows(step));
        EXPECT_EQ(plan.global_rows(step), joined.rows(step));
      }
      EXPECT_EQ(together, step_of(joined, step));
      const auto [fewest, most] = std::ranges::minmax(rows);
      EXPECT_LE(most - fewest, 1);
    }
  }
}

TEST(Plan, GivesARankThatHasRunDryZeroRows) {
  const PlanOptions base{.length = 9, .batch_size = 2, .world_size = 4};
  std::vector<Indices> last_step;
  for (int rank = 0; rank < 4; ++rank) {
    PlanOptions options = base;
    options.rank = rank;
    last_step.push_back(step_of(Plan(options), 1));
  }

  EXPECT_THAT(last_step, ElementsAre(Indices{8}, IsEmpty(), IsEmpty(), IsEmpty()));
}

TEST(Plan, LeavesOutTheShortStepWithDropLast) {
  const Plan plan({.length = 10, .batch_size = 2, .rank = 1, .world_size = 2, .drop_last = true});

  EXPECT_EQ(plan.steps(), 2);
  EXPECT_EQ(step_of(plan, 1), (Indices{6, 7}));
  EXPECT_EQ(plan.handed_out(2), 8);
}

// The padding of PyTorch's DistributedSampler, here by its name only.
TEST(TorchSharding, B057PadsOrDropsAsPyTorchDoes) {
  const auto ranks = [](std::int64_t length, int world_size, bool drop_last) {
    std::vector<Indices> all;
    for (int rank = 0; rank < world_size; ++rank) {
      all.push_back(epoch_of({.length = length,
                              .rank = rank,
                              .world_size = world_size,
                              .drop_last = drop_last,
                              .sharding = Sharding::torch_compat}));
    }
    return all;
  };

  EXPECT_THAT(ranks(10, 4, false),
              ElementsAre(Indices{0, 4, 8}, Indices{1, 5, 9}, Indices{2, 6, 0}, Indices{3, 7, 1}));
  EXPECT_THAT(ranks(10, 4, true),
              ElementsAre(Indices{0, 4}, Indices{1, 5}, Indices{2, 6}, Indices{3, 7}));
  EXPECT_THAT(ranks(3, 7, false), ElementsAre(Indices{0}, Indices{1}, Indices{2}, Indices{0},
                                              Indices{1}, Indices{2}, Indices{0}));
}

TEST(TorchSharding, B056TakesTheSamplesThatPyTorchTakesInBothEpochs) {
  const auto rank_in_epoch = [](int rank, std::int64_t epoch) {
    const Order order(Shuffle::torch_compat, 0, epoch, 8);
    Indices samples;
    for (const std::int64_t position : epoch_of({.length = 8,
                                                 .batch_size = 3,
                                                 .rank = rank,
                                                 .world_size = 2,
                                                 .sharding = Sharding::torch_compat})) {
      samples.push_back(order[position]);
    }
    return samples;
  };

  EXPECT_EQ(rank_in_epoch(0, 0), (Indices{4, 7, 2, 1}));
  EXPECT_EQ(rank_in_epoch(1, 0), (Indices{0, 3, 5, 6}));
  EXPECT_EQ(rank_in_epoch(0, 1), (Indices{5, 2, 7, 1}));
  EXPECT_EQ(rank_in_epoch(1, 1), (Indices{4, 6, 3, 0}));
}

TEST(Plan, B057RefusesAnEpochOfNoSteps) {
  const Error dropped = error_of([] { Plan({.length = 3, .world_size = 8, .drop_last = true}); });
  const Error empty = error_of([] { Plan({.length = 0, .batch_size = 4}); });
  const Error torch_dropped = error_of([] {
    Plan({.length = 3, .world_size = 8, .drop_last = true, .sharding = Sharding::torch_compat});
  });

  EXPECT_EQ(dropped.code(), Code::invalid_argument);
  EXPECT_THAT(dropped.message(), HasSubstr("0 steps per epoch: 3 samples, and a step takes 8"));
  EXPECT_THAT(dropped.hint(), HasSubstr("drop_last"));
  EXPECT_THAT(empty.message(), HasSubstr("0 steps per epoch: 0 samples"));
  EXPECT_THAT(torch_dropped.message(), HasSubstr("0 steps per epoch"));
}

TEST(Plan, RefusesWhatCannotBe) {
  EXPECT_THROW(Plan({.length = -1}), Error);
  EXPECT_THROW(Plan({.length = 5, .batch_size = 0}), Error);
  EXPECT_THROW(Plan({.length = 5, .rank = 2, .world_size = 2}), Error);
  EXPECT_THROW(Plan({.length = 5, .rank = -1, .world_size = 2}), Error);
  EXPECT_THROW(Plan({.length = 5, .world_size = 0}), Error);
  EXPECT_THROW(Plan({.length = 5, .first = -1}), Error);
}

TEST(Plan, GoesOnAfterAnySampleOnAnyNumberOfRanks) {
  constexpr std::int64_t kLength = 23;
  for (std::int64_t first = 0; first <= kLength; ++first) {
    for (const int world_size : {1, 2, 3}) {
      Indices seen;
      for (int rank = 0; rank < world_size; ++rank) {
        const Indices mine = epoch_of({.length = kLength,
                                       .batch_size = 2,
                                       .rank = rank,
                                       .world_size = world_size,
                                       .first = first});
        seen.insert(seen.end(), mine.begin(), mine.end());
      }
      std::ranges::sort(seen);
      EXPECT_EQ(seen, counting(first, kLength)) << first << ' ' << world_size;
    }
  }
}

TEST(Plan, CountsWhatWasHandedOutFromTheEpochsStart) {
  const Plan plan({.length = 23, .batch_size = 2, .world_size = 2, .first = 8});

  EXPECT_EQ(plan.first_step(), 2);
  EXPECT_EQ(plan.handed_out(0), 8);
  EXPECT_EQ(plan.handed_out(1), 12);
  EXPECT_EQ(plan.handed_out(plan.steps()), 23);
}

TEST(TorchSharding, RefusesToStartInTheMiddleOfAStep) {
  const PlanOptions options{.length = 23,
                            .batch_size = 2,
                            .world_size = 2,
                            .sharding = Sharding::torch_compat,
                            .first = 6};

  EXPECT_EQ(error_of([&] { Plan{options}; }).code(), Code::unsupported);
}

}  // namespace
}  // namespace yoke::feed
