#include "yoke/train/batch_finder.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <ATen/Functions.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include "yoke/comm/local_ranks.hpp"
#include "yoke/comm/world.hpp"
#include "yoke/core/error.hpp"

namespace yoke::train {
namespace {

// A device that holds so many samples; notes what was tried.
struct FakeDevice {
  std::int64_t holds;
  std::vector<std::int64_t> tried{};

  BatchTrial trial() {
    return [this](std::int64_t batch) {
      tried.push_back(batch);
      (void)at::rand({3});  // as dropout does
      TORCH_CHECK_WITH(OutOfMemoryError, batch <= holds, "fake device: ", batch, " samples");
    };
  }
};

std::int64_t found(FakeDevice& device, const BatchFinderOptions& options) {
  comm::World world = comm::World::of(comm::alone_group());
  return find_batch_size(options, device.trial(), world.host_group());
}

TEST(BatchFinder, B074FindsTheLargestThatFits) {
  FakeDevice doubling{24};
  EXPECT_EQ(found(doubling, {.start = 2, .most = 1000, .search = BatchSearch::doubling}), 16);
  EXPECT_EQ(doubling.tried, (std::vector<std::int64_t>{2, 4, 8, 16, 32}));

  FakeDevice binary{24};
  EXPECT_EQ(found(binary, {.start = 2, .most = 1000}), 24);
  for (const std::int64_t batch : binary.tried) EXPECT_LE(batch, 32);
}

TEST(BatchFinder, B074NeverGoesBeyondTheDataSet) {
  FakeDevice device{24};
  EXPECT_EQ(found(device, {.start = 2, .most = 20}), 20);
  EXPECT_EQ(*std::ranges::max_element(device.tried), 20);

  FakeDevice tiny{24};
  EXPECT_EQ(found(tiny, {.start = 16, .most = 5}), 5);
}

TEST(BatchFinder, B074RandomNumbersGoOnAsIfNothingHadBeenTried) {
  at::manual_seed(3);
  const at::Tensor expected = at::rand({4});
  at::manual_seed(3);
  FakeDevice device{24};
  (void)found(device, {.start = 2, .most = 1000});

  EXPECT_TRUE(at::rand({4}).equal(expected));
}

TEST(BatchFinder, B074AllRanksGetTheSmallest) {
  std::array<std::int64_t, 2> answers{};
  comm::run_local_ranks(2, [&](comm::World& world) {
    FakeDevice device{world.rank() == 0 ? 24 : 11};
    answers.at(static_cast<std::size_t>(world.rank())) =
        find_batch_size({.start = 2, .most = 1000}, device.trial(), world.host_group());
  });

  EXPECT_EQ(answers[0], 11);
  EXPECT_EQ(answers[1], 11);
}

TEST(BatchFinder, OtherErrorsGoThroughAndNothingFittingIsSaid) {
  comm::World world = comm::World::of(comm::alone_group());
  const BatchTrial broken = [](std::int64_t) { throw Error(Code::io, "no disk"); };
  EXPECT_THROW((void)find_batch_size({.most = 8}, broken, world.host_group()), Error);

  FakeDevice nothing{0};
  try {
    (void)found(nothing, {.start = 4, .most = 8});
    FAIL() << "it found something";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("not even 4"), std::string::npos) << error.message();
  }
}

TEST(BatchPlan, KeepsTheGlobalBatchByAccumulation) {
  const auto plan = [](std::int64_t global, std::int64_t fits, std::int64_t ranks) {
    const BatchPlan made = plan_batches(global, fits, ranks);
    EXPECT_EQ(made.batch * made.accumulate * ranks, global);
    EXPECT_LE(made.batch, fits);
    return made.batch;
  };
  EXPECT_EQ(plan(1024, 300, 2), 256);
  EXPECT_EQ(plan(1024, 2000, 2), 512);
  EXPECT_EQ(plan(96, 20, 3), 16);
  EXPECT_EQ(plan(7, 3, 1), 1);
  EXPECT_THROW((void)plan_batches(10, 5, 3), Error);
  EXPECT_THROW((void)plan_batches(1, 5, 2), Error);
}

}  // namespace
}  // namespace yoke::train
