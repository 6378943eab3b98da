// What goes wrong with a sample, and what the loader says.

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batches.hpp"
#include "errors.hpp"
#include "yoke/data/tensor_dataset.hpp"

namespace yoke::data {
namespace {

using feed::error_of;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr std::int64_t kBad = 13;

// 40 images, one of which is smaller than the others.
struct OneSmallImage : MapDataset {
  [[nodiscard]] std::int64_t size() const override { return 40; }
  [[nodiscard]] Sample get(std::int64_t index, feed::Draws&) const override {
    const at::Tensor image = index == kBad ? at::zeros({3, 144, 192}) : at::zeros({3, 224, 224});
    return {image, at::full({}, index % 10, at::kLong)};
  }
  [[nodiscard]] std::string origin(std::int64_t index) const override {
    return "images/" + std::to_string(index) + ".jpg";
  }
};

struct Throws : MapDataset {
  [[nodiscard]] std::int64_t size() const override { return 40; }
  [[nodiscard]] Sample get(std::int64_t index, feed::Draws&) const override {
    if (index == kBad) throw std::runtime_error("the disk is on fire");
    return {at::full({1}, index), at::full({}, index, at::kLong)};
  }
};

class OnWorkers : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Counts, OnWorkers, ::testing::Values(0U, 1U, 4U));

// Batches handed out before the error.
std::int64_t batches_before_error(DataLoader& loader, Error& error) {
  std::int64_t batches = 0;
  error = error_of([&] {
    for (const Batch& batch : loader.epoch(0)) {
      EXPECT_EQ(batch.index, batches);
      ++batches;
    }
  });
  return batches;
}

TEST_P(OnWorkers, B062ASampleOfAnotherShapeIsNamedWithBothShapes) {
  DataLoader loader(OneSmallImage{}, Placement{},
                    {.batch_size = 4, .shuffle = false, .num_workers = GetParam()});

  Error error(Code::internal, "");
  const std::int64_t batches = batches_before_error(loader, error);

  EXPECT_EQ(batches, kBad / 4);
  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("load sample 13 (images/13.jpg"),
                                     HasSubstr("3x144x192"), HasSubstr("3x224x224")));
  if (GetParam() > 0) {
    EXPECT_THAT(error.message(), ContainsRegex("worker [0-3]"));
  }
}

TEST_P(OnWorkers, AnExceptionOfTheDataSetComesAtItsTurnWithTheSample) {
  DataLoader loader(Throws{}, Placement{},
                    {.batch_size = 4, .shuffle = false, .num_workers = GetParam()});

  Error error(Code::internal, "");
  const std::int64_t batches = batches_before_error(loader, error);

  EXPECT_EQ(batches, kBad / 4);
  EXPECT_THAT(error.message(), HasSubstr("load sample 13"));
  EXPECT_EQ(error.cause(), "the disk is on fire");
  EXPECT_EQ(loader.state().samples, 12);
}

TEST_P(OnWorkers, ALoaderThatFailedBeginsTheEpochAnew) {
  DataLoader loader(Throws{}, Placement{},
                    {.batch_size = 4, .shuffle = false, .num_workers = GetParam()});
  Error error(Code::internal, "");
  (void)batches_before_error(loader, error);

  EXPECT_EQ(batches_before_error(loader, error), kBad / 4);
}

TEST(Failure, ALabelOutsideTheClassesIsNamedWithItsSample) {
  at::Tensor labels = at::zeros({20}, at::kLong);
  labels[kBad] = 10;
  DataLoader loader(TensorDataset(at::zeros({20, 2}), labels, 10), Placement{}, {.batch_size = 4});

  const Error error = error_of([&] { batches_of(loader, 0); });

  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("sample 13"), HasSubstr("label is 10"), HasSubstr("0 to 9")));
}

TEST(Failure, AnUndefinedTensorIsRefused) {
  struct Nothing : MapDataset {
    [[nodiscard]] std::int64_t size() const override { return 4; }
    [[nodiscard]] Sample get(std::int64_t, feed::Draws&) const override { return {}; }
  };

  const Error error = error_of([] { DataLoader(Nothing{}, Placement{}); });

  EXPECT_THAT(error.message(), HasSubstr("undefined"));
}

TEST(Failure, AnEmptyDataSetIsRefused) {
  const TensorDataset nothing(at::zeros({0, 2}), at::zeros({0}, at::kLong));

  const Error error = error_of([&] { DataLoader(nothing, Placement{}); });

  EXPECT_THAT(error.message(), HasSubstr("0 samples"));
}

}  // namespace
}  // namespace yoke::data
