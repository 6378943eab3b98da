#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batches.hpp"
#include "errors.hpp"
#include "idx_bytes.hpp"
#include "temporary_folder.hpp"
#include "yoke/data/idx_images.hpp"
#include "yoke/data/synthetic.hpp"
#include "yoke/data/tensor_dataset.hpp"

namespace yoke::data {
namespace {

using feed::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A folder with 3 training images of 2x4 pixels, counting from 0.
class Idx : public ::testing::Test {
 protected:
  void write(const std::string& images, const std::vector<int>& labels,
             const std::string& prefix = "train") const {
    core::write_atomically(folder_ / (prefix + "-images-idx3-ubyte"), images);
    core::write_atomically(folder_ / (prefix + "-labels-idx1-ubyte"), feed::labels_file(labels));
  }

  feed::TemporaryFolder folder_;
  feed::CacheElsewhere cache_{folder_.path()};
};

TEST_F(Idx, GivesNormalisedPixelsAndLabels) {
  write(feed::counting_images({3, 2, 4}), {2, 0, 1});
  const IdxImages images(folder_.path(), Split::train,
                         {.normalise = {{.mean = 0.5F, .std = 0.25F}}});
  DataLoader loader(images, Placement{}, {.batch_size = 3, .shuffle = false});

  const Batch batch = *loader.epoch(0).next();

  const at::Tensor bytes = at::arange(24, at::kFloat).view({3, 1, 2, 4});
  EXPECT_EQ(batch.input.scalar_type(), at::kFloat);
  EXPECT_EQ(batch.input.sizes(), at::IntArrayRef({3, 1, 2, 4}));
  EXPECT_TRUE(at::allclose(batch.input, (bytes / 255.0 - 0.5) / 0.25, 1e-6, 1e-6));
  EXPECT_TRUE(at::equal(batch.target, at::tensor({2, 0, 1}, at::kLong)));
  EXPECT_EQ(images.num_classes(), 3);
}

TEST_F(Idx, LeavesPixelsBetweenZeroAndOneByDefault) {
  std::string white = feed::idx_header(feed::IdxType::u8, {1, 1, 1});
  white.push_back('\xFF');
  write(white, {0});
  DataLoader loader(IdxImages(folder_.path()), Placement{}, {.batch_size = 1});

  EXPECT_EQ(loader.epoch(0).next()->input.item<float>(), 1.0F);
}

TEST_F(Idx, KeepsColourChannels) {
  write(feed::counting_images({2, 3, 2, 2}), {0, 1});
  DataLoader loader(IdxImages(folder_.path()), Placement{}, {.batch_size = 2});

  EXPECT_EQ(loader.epoch(0).next()->input.sizes(), at::IntArrayRef({2, 3, 2, 2}));
}

TEST_F(Idx, ReadsTheTestSplitBesideTheTrainingSplit) {
  write(feed::counting_images({3, 2, 4}), {2, 0, 1});
  write(feed::counting_images({2, 2, 4}), {0, 1}, "t10k");

  EXPECT_EQ(IdxImages(folder_.path(), Split::train).size(), 3);
  EXPECT_EQ(IdxImages(folder_.path(), Split::test).size(), 2);
}

TEST_F(Idx, B048RefusesThreeImagesAgainstTwoLabels) {
  write(feed::counting_images({3, 2, 4}), {1, 0});

  const Error error = error_of([&] { IdxImages(folder_.path()); });

  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("3 images"), HasSubstr("2 labels")));
}

TEST_F(Idx, B048RefusesATruncatedFileWithBothSizes) {
  std::string images = feed::counting_images({2, 2, 3});
  images.pop_back();
  write(images, {1, 0});

  const Error error = error_of([&] { IdxImages(folder_.path()); });

  EXPECT_EQ(error.code(), Code::corrupt_data);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("train-images-idx3-ubyte"), HasSubstr("28 bytes"),
                                     HasSubstr("found 27")));
}

TEST_F(Idx, RefusesALabelOutsideTheClasses) {
  write(feed::counting_images({3, 2, 4}), {2, 0, 1});

  const Error error =
      error_of([&] { IdxImages(folder_.path(), Split::train, {.num_classes = 2}); });

  EXPECT_THAT(error.message(), AllOf(HasSubstr("label 2"), HasSubstr("2 classes")));
}

TEST_F(Idx, RefusesADeviationOfZero) {
  write(feed::counting_images({3, 2, 4}), {2, 0, 1});

  const Error error = error_of(
      [&] { IdxImages(folder_.path(), Split::train, {.normalise = {{.mean = 0, .std = 0}}}); });

  EXPECT_EQ(error.code(), Code::invalid_argument);
}

TEST_F(Idx, TellsFoldersWithOtherLabelsApart) {
  write(feed::counting_images({3, 2, 4}), {2, 0, 1});
  const std::uint64_t before = IdxImages(folder_.path()).fingerprint();

  write(feed::counting_images({3, 2, 4}), {2, 1, 0});

  EXPECT_NE(IdxImages(folder_.path()).fingerprint(), before);
}

TEST(FashionMnist, IsNormalisedByTheMeanAndDeviationOfItsTrainingImages) {
  if (!std::filesystem::exists(feed::kFashionMnistFolder)) {
    GTEST_SKIP() << "apt-get install dataset-fashion-mnist";
  }
  const auto files = feed::LabelledImages::find(feed::kFashionMnistFolder, Split::train);
  std::array<double, 256> counts{};
  for (const std::byte pixel : files.images().bytes())
    counts[std::to_integer<std::size_t>(pixel)]++;
  double sum = 0;
  double squares = 0;
  for (std::size_t value = 0; value < counts.size(); ++value) {
    const double pixel = static_cast<double>(value) / 255;
    sum += counts[value] * pixel;
    squares += counts[value] * pixel * pixel;
  }
  const double count = 60'000.0 * 28 * 28;
  const double mean = sum / count;
  const double std = std::sqrt(squares / count - mean * mean);

  const IdxImages train("fashion-mnist");
  DataLoader loader(train, Placement{}, {.batch_size = 100, .shuffle = false});
  const at::Tensor delivered = loader.epoch(0).next()->input;

  at::Tensor pixels = at::empty({100, 1, 28, 28}, at::kByte);
  std::memcpy(pixels.mutable_data_ptr(), files.images().bytes().data(), pixels.nbytes());
  EXPECT_EQ(train.size(), 60'000);
  EXPECT_EQ(train.num_classes(), 10);
  // Both are built in with four digits: half of the last one, over the deviation.
  EXPECT_TRUE(at::allclose(delivered * std + mean, pixels / 255.0, 0, 1e-4 / std));
}

TEST(TensorSamples, AreTheRowsOfBothTensors) {
  const at::Tensor input = at::randn({10, 2, 3}, at::kDouble).transpose(1, 2);
  const at::Tensor target = at::randn({10, 4});
  DataLoader loader(TensorDataset(input, target), Placement{}, {.batch_size = 4});

  for (const Batch& batch : loader.epoch(0)) {
    const at::Tensor rows = at::tensor(batch.indices, at::kLong);
    EXPECT_TRUE(at::equal(batch.input, input.index_select(0, rows)));
    EXPECT_TRUE(at::equal(batch.target, target.index_select(0, rows)));
  }
}

TEST(TensorSamples, HaveAsManyClassesAsTheLargestLabelSays) {
  const at::Tensor input = at::zeros({3, 1});

  EXPECT_EQ(TensorDataset(input, at::tensor({0, 6, 2}, at::kLong)).num_classes(), 7);
  EXPECT_EQ(TensorDataset(input, at::tensor({0, 6, 2}, at::kLong), 9).num_classes(), 9);
  EXPECT_EQ(TensorDataset(input, at::zeros({3})).num_classes(), 0);
}

TEST(TensorSamples, AreRefusedWhereTheCountsDiffer) {
  const Error error = error_of([] { TensorDataset(at::zeros({3, 2}), at::zeros({2})); });

  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("3 inputs"), HasSubstr("2 targets")));
}

TEST(Synthetic, FollowsFromSeedAndIndexAlone) {
  const auto batch_of = [](const SyntheticOptions& options, std::int64_t epoch) {
    DataLoader loader(Synthetic(options), Placement{}, {.batch_size = 50, .shuffle = false});
    return *loader.epoch(epoch).next();
  };
  const Batch batch = batch_of({.shape = {2, 3}, .length = 50, .seed = 4}, 0);

  const Batch repeated = batch_of({.shape = {2, 3}, .length = 80, .seed = 4}, 9);
  const Batch other = batch_of({.shape = {2, 3}, .length = 50, .seed = 5}, 0);

  EXPECT_TRUE(at::equal(batch.input, repeated.input));
  EXPECT_TRUE(at::equal(batch.target, repeated.target));
  EXPECT_FALSE(at::equal(batch.input, other.input));
}

// The mean of a class's samples tells it from the others: a linear model can learn it.
TEST(Synthetic, CanBeToldApartByTheMeansOfItsClasses) {
  DataLoader loader(Synthetic({.shape = {256}, .classes = 5, .length = 1000}), Placement{},
                    {.batch_size = 500, .shuffle = false});
  const std::vector<Batch> batches = batches_of(loader, 0);
  const at::Tensor one_hot = at::one_hot(batches[0].target, 5).to(at::kFloat);  // [500, 5]
  const at::Tensor means =
      one_hot.t().matmul(batches[0].input) / one_hot.sum(0).unsqueeze(1);  // [5, 256]

  const at::Tensor guess = at::cdist(batches[1].input, means).argmin(1);

  EXPECT_GT(guess.eq(batches[1].target).to(at::kFloat).mean().item<float>(), 0.95F);
}

TEST(Synthetic, RefusesNumbersBelowOne) {
  EXPECT_EQ(error_of([] { Synthetic({.shape = {0}}); }).code(), Code::invalid_argument);
  EXPECT_EQ(error_of([] { Synthetic({.classes = 0}); }).code(), Code::invalid_argument);
  EXPECT_EQ(error_of([] { Synthetic({.length = 0}); }).code(), Code::invalid_argument);
}

}  // namespace
}  // namespace yoke::data
