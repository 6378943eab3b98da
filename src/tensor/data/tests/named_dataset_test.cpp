#include "yoke/data/named_dataset.hpp"

#include <optional>

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batches.hpp"
#include "errors.hpp"
#include "yoke/data/torch_dataset.hpp"

namespace yoke::data {
namespace {

using feed::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Sample i holds the numbers 1 to i + 1: as long as i + 1.
struct Sentences : NamedDataset {
  [[nodiscard]] std::int64_t size() const override { return 10; }
  [[nodiscard]] NamedTensors get(std::int64_t index, feed::Draws&) const override {
    return {{"tokens", at::arange(1, index + 2)}};
  }
  [[nodiscard]] NamedTensors collate(std::span<const NamedTensors> samples) const override {
    std::int64_t longest = 0;
    for (const NamedTensors& sample : samples)
      longest = std::max(longest, sample[0].second.size(0));
    at::Tensor tokens = at::zeros({static_cast<std::int64_t>(samples.size()), longest}, at::kLong);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const at::Tensor& one = samples[i][0].second;
      tokens[static_cast<std::int64_t>(i)].narrow(0, 0, one.size(0)).copy_(one);
    }
    return {{"input", tokens}, {"lengths", (tokens > 0).sum(1)}};
  }
};

struct Pairs : NamedDataset {
  [[nodiscard]] std::int64_t size() const override { return 10; }
  [[nodiscard]] NamedTensors get(std::int64_t index, feed::Draws& random) const override {
    if (index == bad) return {{"input", at::zeros({3})}, {"target", at::zeros({1})}};
    const auto dice = static_cast<std::int64_t>(random.below(1000));
    return {{"input", at::full({2}, dice, at::kLong)}, {"target", at::full({1}, index, at::kLong)}};
  }
  std::int64_t bad = -1;
};

// How many threads torch would split an operation over.
struct TorchThreads : NamedDataset {
  [[nodiscard]] std::int64_t size() const override { return 8; }
  [[nodiscard]] NamedTensors get(std::int64_t, feed::Draws&) const override {
    return {{"input", at::full({}, at::get_num_threads(), at::kLong)}};
  }
};

TEST(NamedSamples, AreMadeWithoutThreadsOfTorchsOwn) {
  const int before = at::get_num_threads();
  at::set_num_threads(3);
  for (const unsigned workers : {0U, 2U}) {
    DataLoader loader(TorchThreads{}, Placement{}, {.batch_size = 4, .num_workers = workers});

    const std::vector<Batch> batches = batches_of(loader, 0);

    for (const Batch& batch : batches)
      EXPECT_TRUE(at::equal(batch.input, at::ones({4}, at::kLong))) << workers;
    EXPECT_EQ(at::get_num_threads(), 3);
  }
  at::set_num_threads(before);
}

TEST(NamedSamples, AreCollatedByTheirOwnDataSet) {
  for (const unsigned workers : {0U, 3U}) {
    DataLoader loader(Sentences{}, Placement{},
                      {.batch_size = 4, .shuffle = false, .num_workers = workers});

    const std::vector<Batch> batches = batches_of(loader, 0);

    ASSERT_EQ(batches.size(), 3U);
    EXPECT_EQ(batches[0].input.sizes(), at::IntArrayRef({4, 4}));
    EXPECT_EQ(batches[2].input.sizes(), at::IntArrayRef({2, 10}));
    EXPECT_TRUE(at::equal(batches[1]["lengths"], at::tensor({5, 6, 7, 8}, at::kLong)));
    EXPECT_FALSE(batches[0].target.defined());
    EXPECT_THAT(error_of([&] { (void)batches[0]["lenghts"]; }).hint(), HasSubstr("lengths"));
  }
}

TEST(NamedSamples, AreStackedUnlessToldOtherwiseAndDrawTheirOwnChances) {
  const auto batches = [](unsigned workers) {
    DataLoader loader(Pairs{}, Placement{}, {.batch_size = 4, .seed = 3, .num_workers = workers});
    return batches_of(loader, 1);
  };

  const std::vector<Batch> alone = batches(0);

  EXPECT_EQ(alone[0].input.sizes(), at::IntArrayRef({4, 2}));
  EXPECT_TRUE(at::equal(alone[0].target.flatten(), at::tensor(alone[0].indices, at::kLong)));
  expect_equal(batches(4), alone);
}

TEST(NamedSamples, ThatLookDifferentAreNamed) {
  Pairs pairs;
  pairs.bad = 5;
  DataLoader loader(pairs, Placement{}, {.batch_size = 4, .shuffle = false});

  const Error error = error_of([&] { batches_of(loader, 0); });

  EXPECT_THAT(error.message(), AllOf(HasSubstr("sample 1 of the batch"), HasSubstr("sample 4")));
}

TEST(NamedSamples, ARankThatHasRunDryGetsNone) {
  DataLoader loader(Pairs{}, Placement{.rank = 3, .world_size = 4},
                    {.batch_size = 3, .shuffle = false});
  DataLoader dry(Pairs{}, Placement{.rank = 6, .world_size = 7},
                 {.batch_size = 3, .shuffle = false});

  EXPECT_EQ(batches_of(loader, 0)[0].rows(), 2);  // 10 samples on four ranks
  EXPECT_EQ(batches_of(dry, 0)[0].rows(), 1);
}

// As torch::data has its data sets: a size that may be unknown, get() that is not const.
struct FakeExample {
  at::Tensor data;
  at::Tensor target;
};
struct FakeTorchDataset {
  [[nodiscard]] std::optional<std::size_t> size() const { return 7; }
  FakeExample get(std::size_t index) {
    const auto number = static_cast<std::int64_t>(index);
    return {at::full({2}, number, at::kFloat), at::full({}, number % 3, at::kLong)};
  }
};

TEST(TorchSamples, AreTheDataSetsOwn) {
  DataLoader loader(TorchDataset(FakeTorchDataset{}, 3), Placement{},
                    {.batch_size = 3, .seed = 1, .num_workers = 3});

  std::vector<std::int64_t> seen;
  for (const Batch& batch : loader.epoch(0)) {
    const at::Tensor rows = at::tensor(batch.indices, at::kLong);
    EXPECT_TRUE(at::equal(batch.input.select(1, 0), rows.to(at::kFloat)));
    EXPECT_TRUE(at::equal(batch.target, rows.remainder(3)));
    seen.insert(seen.end(), batch.indices.begin(), batch.indices.end());
  }

  EXPECT_EQ(seen.size(), 7U);
  EXPECT_EQ(loader.dataset().num_classes(), 3);
}

}  // namespace
}  // namespace yoke::data
