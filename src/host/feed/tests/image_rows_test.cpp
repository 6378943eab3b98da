#include "yoke/feed/image_rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "errors.hpp"
#include "image_files.hpp"
#include "temporary_folder.hpp"
#include "yoke/feed/image_folder.hpp"
#include "yoke/feed/order.hpp"
#include "yoke/feed/shard.hpp"
#include "yoke/feed/slot_ring.hpp"

namespace yoke::feed {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Row = std::vector<std::byte>;
using namespace transforms;

constexpr std::int64_t kImages = 12;

Transforms training_transforms() {
  return Transforms({RandomResizedCrop{.height = 32}, RandomHorizontalFlip{},
                     ColorJitter{.brightness = around_one(0.4), .hue = Interval{-0.1, 0.1}}});
}

class Photos : public ::testing::Test {
 protected:
  void SetUp() override {
    for (unsigned i = 0; i < kImages; ++i) {
      write_file(path(i), jpeg_file(picture(90 + static_cast<int>(i), 70, i)));
    }
  }
  [[nodiscard]] std::filesystem::path path(std::size_t i) const {
    const std::string name = std::to_string(100 + i) + ".jpg";
    return folder_ / ((i % 2 == 0 ? "a/" : "b/") + name);
  }
  [[nodiscard]] std::shared_ptr<EncodedImages> images() const {
    return std::make_shared<ImageFolder>(folder_.path());
  }

  TemporaryFolder folder_;
};

struct Epoch {
  std::vector<Row> batches;
  std::vector<std::int64_t> labels;
  std::vector<bool> good;
};

struct RunOptions {
  unsigned workers = 0;
  int rank = 0;
  int world_size = 1;
  std::int64_t batch_size = 4;
  std::int64_t epoch = 3;
};

// One rank's epoch through the ring.
Epoch run(const ImageRows& rows, const RunOptions& options) {
  constexpr std::size_t kSlots = 3;
  const std::int64_t length = rows.images().size();
  const Order order(Shuffle::permutation, 7, options.epoch, length);
  const Plan plan({.length = length,
                   .batch_size = options.batch_size,
                   .rank = options.rank,
                   .world_size = options.world_size});
  const std::size_t row_bytes = rows.transforms().bytes();
  const auto most_rows = static_cast<std::size_t>(options.batch_size);
  std::vector<Row> slots(kSlots, Row(row_bytes * most_rows));
  std::vector<std::vector<RowResult>> results(kSlots, std::vector<RowResult>(most_rows));
  SlotRing ring({.slots = kSlots, .workers = options.workers},
                {.rows = [&](std::int64_t step) { return plan.rows(step); },
                 .fill =
                     [&](const Piece& piece) {
                       for (std::int64_t i = piece.first; i < piece.last; ++i) {
                         const auto row = static_cast<std::size_t>(i);
                         const std::int64_t index = order[plan.position(piece.ticket, i)];
                         results[piece.slot][row] = rows.fill(
                             {7, options.epoch, index},
                             std::span(slots[piece.slot]).subspan(row * row_bytes, row_bytes));
                       }
                     }});
  ring.seek(0, plan.steps());
  Epoch epoch;
  while (const auto ready = ring.next()) {
    const auto count = static_cast<std::size_t>(plan.rows(ready->ticket));
    const Row& slot = slots[ready->slot];
    epoch.batches.emplace_back(slot.begin(),
                               slot.begin() + static_cast<std::ptrdiff_t>(count * row_bytes));
    for (std::size_t i = 0; i < count; ++i) {
      epoch.labels.push_back(results[ready->slot][i].label);
      epoch.good.push_back(results[ready->slot][i].good);
    }
    ring.release();
  }
  return epoch;
}

TEST_F(Photos, B060ComeOutTheSameForAnyNumberOfThreads) {
  const ImageRows rows(images(), training_transforms());
  const Epoch alone = run(rows, {.workers = 0});

  for (const unsigned workers : {1U, 2U, 5U}) {
    const Epoch epoch = run(rows, {.workers = workers});

    EXPECT_TRUE(epoch.batches == alone.batches) << workers;
    EXPECT_EQ(epoch.labels, alone.labels);
  }
  EXPECT_EQ(alone.batches.size(), 3U);
}

TEST_F(Photos, RanksTogetherSeeWhatOneRankSees) {
  const ImageRows rows(images(), training_transforms());
  const Epoch alone = run(rows, {.batch_size = 4});

  const Epoch first = run(rows, {.workers = 2, .rank = 0, .world_size = 2, .batch_size = 2});
  const Epoch second = run(rows, {.workers = 1, .rank = 1, .world_size = 2, .batch_size = 2});

  for (std::size_t step = 0; step < alone.batches.size(); ++step) {
    Row joined = first.batches[step];
    joined.insert(joined.end(), second.batches[step].begin(), second.batches[step].end());
    EXPECT_TRUE(joined == alone.batches[step]) << step;
  }
}

TEST_F(Photos, B060AreAugmentedAnewInEachEpoch) {
  const ImageRows rows(images(), training_transforms());
  Row one(rows.transforms().bytes());
  Row other(rows.transforms().bytes());

  rows.fill({7, 0, 5}, one);
  rows.fill({7, 1, 5}, other);

  EXPECT_FALSE(one == other);
}

TEST_F(Photos, B044ATruncatedOneEndsTheRunWithItsPathAndIndex) {
  const File file = jpeg_file(picture(90, 70));
  write_file(path(4), std::span(file).first(file.size() - 54));
  const ImageRows rows(images(), training_transforms());
  Row row(rows.transforms().bytes());

  const Error error = error_of([&] { rows.fill({7, 0, 2}, row); });

  EXPECT_EQ(error.code(), Code::corrupt_data);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("sample 2"), HasSubstr(path(4).string())));
}

TEST_F(Photos, B044BadOnesCountForNothingUnderTheSkipPolicyAndStepsStayEqual) {
  const File file = jpeg_file(picture(90, 70));
  write_file(path(4), std::span(file).first(file.size() - 54));
  write_file(path(5), {});
  const ImageRows rows(images(), training_transforms(), {.bad_samples = BadSamples::skip});

  const Epoch first = run(rows, {.workers = 2, .rank = 0, .world_size = 2, .batch_size = 2});
  const Epoch second = run(rows, {.workers = 2, .rank = 1, .world_size = 2, .batch_size = 2});

  EXPECT_EQ(first.batches.size(), second.batches.size());
  EXPECT_EQ(std::ranges::count(first.good, true) + std::ranges::count(second.good, true),
            kImages - 2);
  const auto quarantine = rows.quarantine();
  ASSERT_EQ(quarantine.size(), 2U);
  EXPECT_EQ(quarantine[0].origin, path(4).string());
  EXPECT_THAT(quarantine[1].reason, HasSubstr("0 bytes"));
}

TEST_F(Photos, SubstitutesFollowFromTheKeyAlone) {
  write_file(path(5), {});
  const ImageRows once(images(), training_transforms(), {.bad_samples = BadSamples::substitute});
  const ImageRows again(images(), training_transforms(), {.bad_samples = BadSamples::substitute});
  const std::int64_t bad = 8;  // path(5) stands behind the six images of class a and b/101, b/103
  Row one(once.transforms().bytes());
  Row other(again.transforms().bytes());

  const RowResult first = once.fill({7, 2, bad}, one);
  (void)again.fill({7, 2, 0}, other);
  const RowResult second = again.fill({7, 2, bad}, other);

  EXPECT_TRUE(first.good);
  EXPECT_NE(first.index, bad);
  EXPECT_EQ(first.index, second.index);
  EXPECT_EQ(first.label, once.images().label(first.index));
  EXPECT_TRUE(one == other);
}

TEST_F(Photos, TooManyBadOnesEndTheRun) {
  for (std::size_t i = 0; i < 4; ++i) write_file(path(i), {});
  const ImageRows rows(images(), training_transforms(),
                       {.bad_samples = BadSamples::skip, .most_bad = 3});

  const Error error = error_of([&] { (void)run(rows, {}); });

  EXPECT_THAT(error.message(), HasSubstr("4 of 12 images are bad, and 3 are allowed"));
}

TEST_F(Photos, OneThatIsGoneMeanwhileIsNamed) {
  const auto list = images();
  std::filesystem::remove(path(0));
  const ImageRows rows(list, training_transforms());
  Row row(rows.transforms().bytes());

  const Error error = error_of([&] { rows.fill({7, 0, 0}, row); });

  EXPECT_EQ(error.code(), Code::not_found);
  EXPECT_THAT(error.message(), HasSubstr(path(0).string()));
}

}  // namespace
}  // namespace yoke::feed
