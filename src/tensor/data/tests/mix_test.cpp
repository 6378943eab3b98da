#include "yoke/data/mix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batches.hpp"
#include "errors.hpp"
#include "yoke/data/tensor_dataset.hpp"

namespace yoke::data {
namespace {

using feed::error_of;
using ::testing::HasSubstr;

// Row i is filled with the number i and has the class i.
Batch numbered(std::int64_t rows, std::int64_t step = 0) {
  Batch batch;
  batch.input = at::arange(rows, at::kFloat).view({rows, 1, 1, 1}).expand({rows, 3, 8, 10}).clone();
  batch.target = at::arange(rows, at::kLong);
  batch.indices.resize(static_cast<std::size_t>(rows));
  batch.index = step;
  return batch;
}

at::Tensor neighbours(const at::Tensor& rows) { return rows.roll(1, 0); }

TEST(MixUp, MixesImagesAndTargetsInTheSameParts) {
  for (const std::int64_t rows : {1, 2, 5}) {
    const Batch plain = numbered(rows);
    Batch mixed = numbered(rows);

    MixUp{.alpha = 0.7, .num_classes = 6, .seed = 3}(mixed);

    const at::Tensor own = at::one_hot(plain.target, 6).to(at::kFloat);
    const double part = rows == 1 ? 1 : mixed.target[0][0].item<double>();
    EXPECT_GE(part, 0);
    EXPECT_LE(part, 1);
    EXPECT_TRUE(at::allclose(mixed.target, own * part + neighbours(own) * (1 - part)));
    EXPECT_TRUE(at::allclose(mixed.input, plain.input * part + neighbours(plain.input) * (1 - part),
                             1e-5, 1e-6));
  }
}

TEST(CutMix, PutsAWindowOfTheNeighbourInAndCountsItsPixels) {
  for (std::int64_t step = 0; step < 50; ++step) {
    const Batch plain = numbered(4, step);
    Batch mixed = numbered(4, step);

    CutMix{.num_classes = 4, .seed = 3}(mixed);

    const at::Tensor own = mixed.input.eq(plain.input).to(at::kFloat).mean({1, 2, 3});  // [4]
    const at::Tensor other = mixed.input.eq(neighbours(plain.input)).to(at::kFloat).mean({1, 2, 3});
    const at::Tensor classes = at::one_hot(plain.target, 4).to(at::kFloat);
    EXPECT_TRUE(at::allclose(own + other, at::ones({4})));
    EXPECT_TRUE(at::allclose(
        mixed.target, classes * own.unsqueeze(1) + neighbours(classes) * other.unsqueeze(1)));
  }
}

// Beta(alpha, alpha) has the mean 1/2 and the variance 1 / (4 (2 alpha + 1)).
TEST(MixUp, DrawsItsPartFromABetaDistribution) {
  for (const double alpha : {0.2, 1.0, 4.0}) {
    constexpr int kDraws = 4000;
    double sum = 0;
    double squares = 0;
    for (std::int64_t step = 0; step < kDraws; ++step) {
      Batch batch = numbered(2, step);
      MixUp{.alpha = alpha, .num_classes = 2, .seed = 9}(batch);
      const double part = batch.target[0][0].item<double>();
      sum += part;
      squares += part * part;
    }
    const double mean = sum / kDraws;
    const double variance = squares / kDraws - mean * mean;
    const double expected = 1 / (4 * (2 * alpha + 1));
    // Five deviations of a mean of so many, and a tenth of the variance.
    EXPECT_NEAR(mean, 0.5, 5 * std::sqrt(expected / kDraws)) << alpha;
    EXPECT_NEAR(variance, expected, 0.1 * expected) << alpha;
  }
}

TEST(MixUpOrCutMix, TakesEachForAboutHalfOfTheBatches) {
  int cut = 0;
  for (std::int64_t step = 0; step < 400; ++step) {
    Batch batch = numbered(2, step);
    MixUpOrCutMix{{.num_classes = 2}, {.num_classes = 2}}(batch);
    cut += batch.input.eq(0).logical_or(batch.input.eq(1)).all().item<bool>() ? 1 : 0;
  }

  EXPECT_GT(cut, 140);  // six deviations of 10 around 200
  EXPECT_LT(cut, 260);
}

TEST(MixUp, IsRepeatedByALoaderThatBeginsAgain) {
  const auto batches = [](std::int64_t epoch) {
    DataLoader loader(
        TensorDataset(at::randn({20, 3, 4, 4}, at::kFloat), at::zeros({20}, at::kLong), 2),
        Placement{}, {.batch_size = 6, .batch_transform = MixUp{.num_classes = 2, .seed = 1}});
    return batches_of(loader, epoch);
  };
  at::manual_seed(1);
  const auto first = batches(2);
  at::manual_seed(1);
  const auto again = batches(2);

  expect_equal(first, again);
  EXPECT_EQ(first[0].target.sizes(), at::IntArrayRef({6, 2}));
}

TEST(MixUp, RefusesWhatItCannotMix) {
  Batch bytes = numbered(2);
  bytes.input = bytes.input.to(at::kByte);
  Batch batch = numbered(2);

  EXPECT_THAT(error_of([&] { MixUp{.num_classes = 2}(bytes); }).message(), HasSubstr("floats"));
  EXPECT_THAT(error_of([&] { (MixUp{.alpha = 0, .num_classes = 2})(batch); }).message(),
              HasSubstr("alpha is 0"));
  EXPECT_THAT(error_of([&] { MixUp{}(batch); }).message(), HasSubstr("classes is 0"));
}

}  // namespace
}  // namespace yoke::data
