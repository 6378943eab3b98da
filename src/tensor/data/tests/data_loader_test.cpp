#include "yoke/data/data_loader.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batches.hpp"
#include "errors.hpp"
#include "yoke/data/synthetic.hpp"
#include "yoke/data/tensor_dataset.hpp"

namespace yoke::data {
namespace {

using feed::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Indices = std::vector<std::int64_t>;

Indices up_to(std::int64_t length) {
  Indices numbers(static_cast<std::size_t>(length));
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  return numbers;
}

Indices sorted(Indices indices) {
  std::ranges::sort(indices);
  return indices;
}

// Sample i is the number i, and its class i mod 10.
TensorDataset numbers(std::int64_t length) {
  return {at::arange(length, at::kFloat).view({-1, 1}), at::arange(length, at::kLong).remainder(10),
          10};
}

// An augmentation: what a sample looks like is left to chance.
struct Dice : MapDataset {
  [[nodiscard]] std::int64_t size() const override { return 20; }
  [[nodiscard]] Sample get(std::int64_t index, feed::Draws& random) const override {
    return {at::full({1}, static_cast<std::int64_t>(random.below(10'000)), at::kLong),
            at::full({}, index, at::kLong)};
  }
};

TEST(DataLoader, GivesEachSampleOncePerEpochInANewOrder) {
  DataLoader loader(numbers(100), Placement{}, {.batch_size = 32, .seed = 7});

  const Indices first = indices_of(batches_of(loader, 0));
  const Indices second = indices_of(batches_of(loader, 1));

  EXPECT_EQ(sorted(first), up_to(100));
  EXPECT_EQ(sorted(second), up_to(100));
  EXPECT_NE(first, second);
  EXPECT_NE(first, up_to(100));
}

TEST(DataLoader, PutsTheSampleOfEachIndexIntoItsRow) {
  DataLoader loader(numbers(25), Placement{}, {.batch_size = 10});

  std::vector<std::int64_t> rows;
  for (const Batch& batch : loader.epoch(3)) {
    rows.push_back(batch.rows());
    ASSERT_EQ(batch.input.sizes(), at::IntArrayRef({batch.rows(), 1}));
    for (std::int64_t row = 0; row < batch.rows(); ++row) {
      const std::int64_t index = batch.indices[static_cast<std::size_t>(row)];
      EXPECT_EQ(batch.input[row].item<float>(), static_cast<float>(index));
      EXPECT_EQ(batch.target[row].item<std::int64_t>(), index % 10);
    }
    EXPECT_EQ(batch.epoch, 3);
    EXPECT_EQ(batch.global_rows, batch.rows());
  }

  EXPECT_THAT(rows, ElementsAre(10, 10, 5));
  EXPECT_EQ(loader.steps(), 3);
}

TEST(DataLoader, GivesTheSameBatchesOnAnyNumberOfWorkers) {
  const auto with = [](unsigned workers) {
    return DataLoader(Synthetic({.shape = {3, 5}, .length = 203}), Placement{},
                      {.batch_size = 16, .seed = 5, .num_workers = workers});
  };
  DataLoader alone = with(0);

  for (const unsigned workers : {1U, 4U}) {
    DataLoader loader = with(workers);
    for (const std::int64_t epoch : {0, 1, 5}) {
      expect_equal(batches_of(loader, epoch), batches_of(alone, epoch));
    }
  }
}

TEST(DataLoader, KeepsTheOrderOfTheDataWithoutShuffle) {
  DataLoader loader(numbers(7), Placement{}, {.batch_size = 3, .shuffle = false});

  const auto batches = batches_of(loader, 0);

  EXPECT_EQ(indices_of(batches), up_to(7));
  EXPECT_EQ(batches.back().rows(), 1);
}

TEST(DataLoader, LeavesOutTheShortStepWithDropLast) {
  DataLoader loader(numbers(7), Placement{},
                    {.batch_size = 3, .shuffle = false, .drop_last = true});

  EXPECT_EQ(indices_of(batches_of(loader, 0)), up_to(6));
  EXPECT_EQ(loader.steps(), 2);
}

TEST(DataLoader, B056ShufflesEachEpochAnewAndTheSameWayInEachRun) {
  const DataLoaderOptions options{.batch_size = 2, .seed = 0};
  DataLoader loader(numbers(8), Placement{}, options);
  DataLoader repeated(numbers(8), Placement{}, options);

  std::set<Indices> orders;
  for (std::int64_t epoch = 0; epoch < 10; ++epoch) {
    const Indices order = indices_of(batches_of(loader, epoch));
    EXPECT_EQ(order, indices_of(batches_of(repeated, epoch)));
    orders.insert(order);
  }

  EXPECT_EQ(orders.size(), 10U);  // of 8! = 40,320
}

TEST(DataLoader, B060RandomChoicesFollowFromSeedEpochAndIndexAlone) {
  const auto draws_of = [](unsigned workers, std::int64_t epoch) {
    DataLoader loader(Dice{}, Placement{}, {.batch_size = 3, .seed = 1, .num_workers = workers});
    Indices by_index(20);
    for (const Batch& batch : loader.epoch(epoch)) {
      for (std::int64_t row = 0; row < batch.rows(); ++row) {
        by_index[static_cast<std::size_t>(batch.target[row].item<std::int64_t>())] =
            batch.input[row].item<std::int64_t>();
      }
    }
    return by_index;
  };

  const Indices first = draws_of(4, 0);
  const Indices second = draws_of(4, 1);

  EXPECT_EQ(draws_of(4, 0), first);
  EXPECT_EQ(draws_of(2, 0), first);
  EXPECT_EQ(draws_of(0, 1), second);
  std::set<std::int64_t> all(first.begin(), first.end());
  all.insert(second.begin(), second.end());
  EXPECT_GE(all.size(), 38U);  // of 40 draws in 10,000, more than 2 repeats come once in 10^4 seeds
}

TEST(DataLoader, ResumesAfterEveryBatch) {
  const DataLoaderOptions options{.batch_size = 4, .seed = 11};
  DataLoader straight(numbers(27), Placement{}, options);
  const std::vector<Batch> all = batches_of(straight, 2);
  const std::vector<Batch> next_epoch = batches_of(straight, 3);

  for (std::size_t taken = 0; taken <= all.size(); ++taken) {
    DataLoader stopped(numbers(27), Placement{}, options);
    auto epoch = stopped.epoch(2);
    for (std::size_t i = 0; i < taken; ++i) ASSERT_NE(epoch.next(), nullptr);
    const feed::Position position = stopped.state();

    DataLoader resumed(numbers(27), Placement{}, {.batch_size = 4, .seed = 99, .num_workers = 1});
    resumed.load_state(position);
    EXPECT_EQ(resumed.state(), position);

    expect_equal(batches_of(resumed, 2), {all.begin() + static_cast<long>(taken), all.end()});
    expect_equal(batches_of(resumed, 3), next_epoch);
  }
}

TEST(DataLoader, ResumesOnAnotherNumberOfRanksWithAnotherBatchSize) {
  DataLoader one(numbers(50), Placement{}, {.batch_size = 7, .seed = 3});
  auto epoch = one.epoch(0);
  Indices seen;
  for (int i = 0; i < 3; ++i) {
    const Batch* batch = epoch.next();
    seen.insert(seen.end(), batch->indices.begin(), batch->indices.end());
  }

  for (int rank = 0; rank < 3; ++rank) {
    DataLoader loader(numbers(50), Placement{.rank = rank, .world_size = 3},
                      {.batch_size = 4, .seed = 3});
    loader.load_state(one.state());
    const Indices rest = indices_of(batches_of(loader, 0));
    seen.insert(seen.end(), rest.begin(), rest.end());
  }

  EXPECT_EQ(sorted(seen), up_to(50));
}

TEST(DataLoader, CountsWhatWasHandedOutAndNotWhatWasMadeAhead) {
  DataLoader loader(numbers(40), Placement{}, {.batch_size = 8, .seed = 3});

  auto epoch = loader.epoch(1);
  EXPECT_EQ(loader.state(), (feed::Position{.seed = 3, .epoch = 1, .samples = 0, .length = 40}));
  (void)epoch.next();
  (void)epoch.next();

  EXPECT_EQ(loader.state(), (feed::Position{.seed = 3, .epoch = 1, .samples = 16, .length = 40}));
  EXPECT_EQ(epoch.steps(), 5);
}

TEST(DataLoader, RefusesTheStateOfAnotherDataSet) {
  DataLoader loader(numbers(40), Placement{}, {});

  const Error error = error_of([&] { loader.load_state({.length = 39}); });

  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_THAT(error.message(), HasSubstr("39"));
  EXPECT_THAT(error.message(), HasSubstr("40"));
}

TEST(DataLoader, LeavesABatchThatIsKeptAlone) {
  DataLoader loader(numbers(64), Placement{}, {.batch_size = 4, .prefetch_batches = 1});
  std::vector<at::Tensor> views;
  std::vector<at::Tensor> copies;

  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    for (const Batch& batch : loader.epoch(epoch)) {
      views.push_back(batch.input.slice(0, 1, 3));
      copies.push_back(batch.input.slice(0, 1, 3).clone());
    }
  }

  for (std::size_t i = 0; i < views.size(); ++i) EXPECT_TRUE(at::equal(views[i], copies[i])) << i;
}

TEST(DataLoader, UsesTheMemoryOfBatchesThatAreNotKeptAgain) {
  DataLoader loader(numbers(400), Placement{}, {.batch_size = 4, .prefetch_batches = 2});

  std::set<const void*> places;
  for (const Batch& batch : loader.epoch(0)) places.insert(batch.input.const_data_ptr());

  EXPECT_LE(places.size(), 4U);  // prefetch_batches + 2
}

TEST(DataLoader, GivesBatchesForTrainingAfterUseInInferenceMode) {
  DataLoader loader(numbers(20), Placement{}, {.batch_size = 5, .num_workers = 0});
  std::vector<Batch> kept;
  {
    const c10::InferenceMode inference;
    kept = batches_of(loader, 0);
  }

  for (const Batch& batch : loader.epoch(1)) {
    const at::Tensor weight = at::ones({1, 1}, at::kFloat).requires_grad_();
    EXPECT_NO_THROW(batch.input.matmul(weight).sum().backward());
  }
}

TEST(DataLoader, BeginsAnewAfterABreak) {
  DataLoader loader(numbers(100), Placement{}, {.batch_size = 8, .seed = 2});
  const auto whole = batches_of(loader, 4);

  for (int taken = 0; taken < 5; ++taken) {
    auto epoch = loader.epoch(4);
    for (int i = 0; i < taken; ++i) (void)epoch.next();
    expect_equal(batches_of(loader, 4), whole);
  }
}

TEST(DataLoader, MakesTheNextEpochsFirstBatchesBeforeItIsBegun) {
  DataLoader loader(numbers(16), Placement{},
                    {.batch_size = 8, .num_workers = 1, .prefetch_batches = 2});
  (void)batches_of(loader, 0);

  while (loader.report().ready < 2) std::this_thread::yield();  // ends: the ring has free slots
  const DataLoader::Report before = loader.report();
  (void)batches_of(loader, 1);

  EXPECT_EQ(before.batches, 2);
  EXPECT_EQ(loader.report().batches, 4);
  EXPECT_EQ(loader.report().waited, before.waited);
}

TEST(DataLoader, EndsInTheMiddleOfAnEpoch) {
  for (const unsigned workers : {0U, 1U, 4U}) {
    DataLoader loader(Synthetic({.shape = {1000}, .length = 500}), Placement{},
                      {.batch_size = 8, .num_workers = workers});
    const Batch* batch = loader.epoch(0).next();
    const at::Tensor kept = batch->input;

    DataLoader moved = std::move(loader);

    EXPECT_EQ(moved.state().samples, 8);
    EXPECT_EQ(kept.size(0), 8);
  }
}

TEST(DataLoader, RefusesABatchOfAnEpochThatHasEnded) {
  DataLoader loader(numbers(16), Placement{}, {.batch_size = 8});
  auto first = loader.epoch(0);
  auto second = loader.epoch(1);

  const Error error = error_of([&] { (void)first.next(); });

  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_NE(second.next(), nullptr);
}

TEST(DataLoader, RefusesOptionsThatCannotBe) {
  const auto refusal = [](const DataLoaderOptions& options, const Placement& placement = {}) {
    return error_of([&] { DataLoader(numbers(4), placement, options); }).message();
  };

  EXPECT_THAT(refusal({.batch_size = 0}), HasSubstr("batch size 0"));
  EXPECT_THAT(refusal({.prefetch_batches = 0}), HasSubstr("prefetch_batches 0"));
  EXPECT_THAT(refusal({}, {.rank = 2, .world_size = 2}), HasSubstr("rank 2 of 2"));
  EXPECT_EQ(error_of([] { DataLoader(std::shared_ptr<const Dataset>(), Placement{}); }).code(),
            Code::invalid_argument);
}

TEST(DataLoader, B057RefusesAnEpochOfNoSteps) {
  const Error error = error_of([] {
    DataLoader(numbers(3), Placement{.rank = 0, .world_size = 8},
               {.batch_size = 1, .drop_last = true});
  });

  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_THAT(error.message(), HasSubstr("0 steps per epoch"));
}

}  // namespace
}  // namespace yoke::data
