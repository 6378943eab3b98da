// Batches on a card beside the same ones on the host.

#include <c10/core/StreamGuard.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batches.hpp"
#include "errors.hpp"
#include "yoke/data/synthetic.hpp"
#include "yoke/data/tensor_dataset.hpp"

namespace yoke::data {
namespace {

const Placement kCard{.device = at::Device(at::kCUDA, 0)};

DataLoader loader_on(const Placement& placement, unsigned workers = 2, bool pin_memory = true) {
  return {Synthetic({.shape = {3, 64, 64}, .length = 1000}),
          placement,
          {.batch_size = 32, .seed = 3, .num_workers = workers, .pin_memory = pin_memory}};
}

// What a step is to the loader: work on the caller's stream that reads the batch long after the
// host has gone on to the next one.
at::Tensor slow_sums(const Batch& batch, at::Tensor& ballast) {
  for (int i = 0; i < 4; ++i) ballast = ballast.matmul(ballast).clamp(-1, 1);
  return batch.input.sum({1, 2, 3}) + batch.target;
}

void expect_equal_sums(DataLoader& on_card, DataLoader& on_host, std::int64_t epoch) {
  at::Tensor ballast = at::eye(4096, kCard.device);
  std::vector<at::Tensor> sums;
  for (const Batch& batch : on_card.epoch(epoch)) {
    ASSERT_EQ(batch.input.device(), kCard.device);
    ASSERT_EQ(batch.target.device(), kCard.device);
    sums.push_back(slow_sums(batch, ballast));
  }
  std::size_t step = 0;
  for (const Batch& batch : on_host.epoch(epoch)) {
    const at::Tensor expected = batch.input.sum({1, 2, 3}) + batch.target;
    ASSERT_LT(step, sums.size());
    // Sums of 12,288 numbers of variance 2, added in another order.
    EXPECT_TRUE(at::allclose(sums[step++].cpu(), expected, 1e-4, 1e-2)) << "step " << step;
  }
  EXPECT_EQ(step, sums.size());
}

TEST(OnACard, BatchesAreReadWholeHoweverFarTheHostRunsAhead) {
  DataLoader on_host = loader_on({});

  for (const unsigned workers : {0U, 1U, 4U}) {
    for (const bool pin_memory : {false, true}) {
      DataLoader on_card = loader_on(kCard, workers, pin_memory);
      for (const std::int64_t epoch : {0, 1, 4}) expect_equal_sums(on_card, on_host, epoch);
    }
  }
}

TEST(OnACard, BatchesFollowTheStreamThatIsCurrentWhenTheyAreTaken) {
  const c10::impl::VirtualGuardImpl cards(at::kCUDA);
  const c10::Stream own = cards.getStreamFromGlobalPool(kCard.device);
  DataLoader on_host = loader_on({});
  DataLoader on_card = loader_on(kCard);

  const c10::StreamGuard guard(own);

  expect_equal_sums(on_card, on_host, 0);
}

TEST(OnACard, BatchesThatAreKeptStayAsTheyWere) {
  DataLoader on_host = loader_on({});
  DataLoader on_card = loader_on(kCard);
  const std::vector<Batch> expected = batches_of(on_host, 2);

  std::vector<Batch> kept = batches_of(on_card, 2);

  for (Batch& batch : kept) {
    batch.input = batch.input.cpu();
    batch.target = batch.target.cpu();
  }
  expect_equal(kept, expected);
}

TEST(OnACard, AnEpochBeginsAnewAfterABreak) {
  DataLoader on_host = loader_on({});
  DataLoader on_card = loader_on(kCard);

  for (int taken = 0; taken < 4; ++taken) {
    auto epoch = on_card.epoch(taken);
    for (int i = 0; i < taken; ++i) (void)epoch.next();
    expect_equal_sums(on_card, on_host, 0);
  }
}

TEST(OnACard, ARankThatHasRunDryGetsNoRows) {
  DataLoader loader(Synthetic({.shape = {4}, .length = 10}),
                    Placement{.rank = 3, .world_size = 4, .device = kCard.device},
                    {.batch_size = 2, .shuffle = false});

  const std::vector<Batch> batches = batches_of(loader, 0);

  EXPECT_EQ(batches.back().input.sizes(), at::IntArrayRef({0, 4}));
  EXPECT_EQ(batches.back().input.device(), kCard.device);
}

TEST(OnACard, AnErrorComesAfterTheBatchesBeforeIt) {
  at::Tensor labels = at::zeros({20}, at::kLong);
  labels[13] = 10;
  DataLoader loader(TensorDataset(at::zeros({20, 2}), labels, 10), kCard,
                    {.batch_size = 4, .shuffle = false});

  for (int attempt = 0; attempt < 2; ++attempt) {
    int batches = 0;
    const Error error = feed::error_of([&] {
      for (const Batch& batch : loader.epoch(0)) batches += batch.rows() == 4 ? 1 : 0;
    });

    EXPECT_EQ(batches, 3);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("sample 13"));
  }
}

TEST(OnACard, TheDeviceMayBeGivenWithoutANumber) {
  DataLoader loader(Synthetic(), Placement{.device = at::kCUDA}, {.batch_size = 8});

  EXPECT_EQ(loader.epoch(0).next()->input.device(), kCard.device);
}

}  // namespace
}  // namespace yoke::data
