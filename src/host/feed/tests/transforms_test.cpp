#include "yoke/feed/transforms.hpp"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "errors.hpp"
#include "image_files.hpp"

namespace yoke::feed {
namespace {

using namespace transforms;
using ::testing::Each;
using ::testing::HasSubstr;
using Row = std::vector<std::byte>;

Row made(const Transforms& transforms, const File& file, std::int64_t index = 0) {
  TransformWorkspace workspace;
  Draws draws({.seed = 3, .epoch = 1, .index = index});
  Row row(transforms.bytes());
  transforms.apply(file, draws, workspace, row);
  return row;
}

std::vector<std::uint8_t> bytes(const Row& row) {
  std::vector<std::uint8_t> values;
  for (const std::byte byte : row) values.push_back(std::to_integer<std::uint8_t>(byte));
  return values;
}

Image decoded(const File& file) {
  ImageDecoder decoder;
  Image image;
  decoder.open(file);
  decoder.read(image);
  return image;
}

TEST(Transforms, CenterCropOfAJpegIsItsMiddle) {
  const File file = jpeg_file(picture(101, 80));

  const Row row = made(Transforms({CenterCrop{.height = 40, .width = 50}}), file);

  EXPECT_EQ(bytes(row), rgb(decoded(file), {26, 20, 50, 40}));  // round(25.5) is 26
}

TEST(Transforms, CenterCropOfASmallerImageIsBlackAround) {
  const File file = jpeg_file(picture(8, 8));

  const auto row = bytes(made(Transforms({CenterCrop{.height = 11}}), file));

  EXPECT_EQ(row[0], 0);
  const std::size_t first = (1 * 11 + 1) * 3;  // 3 pixels more: 1 above, 2 below
  EXPECT_EQ(row[first], rgb(decoded(file))[0]);
}

TEST(Transforms, PuttingOffGeometryChangesNothing) {
  const File file = jpeg_file(picture(160, 120));
  const Image whole = decoded(file);
  Resizer resizer;
  Image step;
  resizer.resize(whole, whole.whole(), {.width = 64, .height = 48}, step);

  const Row row = made(Transforms({Resize{.size = 48}, CenterCrop{.height = 40}}), file);

  EXPECT_EQ(bytes(row), rgb(step, {12, 4, 40, 40}));
}

TEST(Transforms, FlipsAreMirrorImages) {
  const File file = jpeg_file(picture(21, 13));
  const auto plain = bytes(made(Transforms({Resize{.size = 13, .width = 21}}), file));

  const auto mirrored = bytes(
      made(Transforms({RandomHorizontalFlip{.p = 1}, Resize{.size = 13, .width = 21}}), file));
  const auto turned =
      bytes(made(Transforms({Resize{.size = 13, .width = 21}, RandomHorizontalFlip{.p = 1},
                             RandomVerticalFlip{.p = 1}}),
                 file));

  for (std::size_t y = 0; y < 13; ++y) {
    for (std::size_t x = 0; x < 21; ++x) {
      EXPECT_EQ(mirrored[3 * (21 * y + x)], plain[3 * (21 * y + 20 - x)]);
      EXPECT_EQ(turned[3 * (21 * y + x)], plain[3 * (21 * (12 - y) + 20 - x)]);
    }
  }
}

TEST(Transforms, ACropAfterAFlipTakesTheMirrorImagesPart) {
  const File file = jpeg_file(picture(64, 16));
  const Image whole = decoded(file);

  const auto row = bytes(made(
      Transforms({RandomHorizontalFlip{.p = 1}, CenterCrop{.height = 16, .width = 15}}), file));

  // left = round(24.5) = 24 in the mirror image, so 64 - 24 - 15 = 25 in the file
  EXPECT_EQ(row[0], rgb(whole)[3 * (25 + 14)]);
}

TEST(Transforms, NormalizeGivesTheFormulasFloatsInBothLayouts) {
  const File file = jpeg_file(picture(20, 10));
  const auto plain = bytes(made(Transforms({CenterCrop{.height = 10}}), file));
  const Normalize normalize;
  for (const PixelLayout layout : {PixelLayout::hwc, PixelLayout::chw}) {
    const Transforms transforms({CenterCrop{.height = 10}, normalize}, layout);

    const Row row = made(transforms, file);

    std::vector<float> floats(row.size() / sizeof(float));
    std::memcpy(floats.data(), row.data(), row.size());
    for (std::size_t i = 0; i < 100; ++i) {
      for (std::size_t c = 0; c < 3; ++c) {
        const float expected =
            (static_cast<float>(plain[3 * i + c]) / 255.0F - normalize.mean[c]) / normalize.std[c];
        EXPECT_EQ(floats[layout == PixelLayout::hwc ? 3 * i + c : 100 * c + i], expected);
      }
    }
  }
}

TEST(Transforms, RandomBoxesLieInsideAndHaveTheAreasAndShapesAskedFor) {
  const RandomResizedCrop crop;
  for (std::int64_t i = 0; i < 2000; ++i) {
    Draws draws({.seed = 1, .epoch = 0, .index = i});

    const Region box = crop_box(crop, 500, 375, draws);

    ASSERT_TRUE(box.left >= 0 && box.top >= 0 && box.right() <= 500 && box.bottom() <= 375);
    const double ratio = static_cast<double>(box.width) / box.height;
    EXPECT_GT(ratio, 0.70);
    EXPECT_LT(ratio, 1.40);
    EXPECT_GT(box.width * box.height, 0.07 * 500 * 375);
  }
}

TEST(Transforms, ABoxThatNeverFitsIsTheMiddle) {
  Draws draws({.seed = 1, .epoch = 0, .index = 0});

  const Region box = crop_box({.scale = {1.0, 1.0}, .ratio = {1.0, 1.0}}, 900, 30, draws);

  EXPECT_EQ(box, (Region{435, 0, 30, 30}));
}

TEST(Transforms, StepsThatCannotBeAreRefusedByName) {
  const auto message = [](std::vector<Step> steps) {
    return error_of([&] { const Transforms transforms(std::move(steps)); }).message();
  };

  EXPECT_THAT(message({Resize{.size = 256}}), HasSubstr("different sizes"));
  EXPECT_THAT(message({CenterCrop{.height = 0}}), HasSubstr("CenterCrop"));
  EXPECT_THAT(message({RandomHorizontalFlip{.p = 2}}), HasSubstr("probability 2"));
  EXPECT_THAT(message({CenterCrop{}, Normalize{}, RandomHorizontalFlip{}}), HasSubstr("Normalize"));
  EXPECT_THAT(message({ColorJitter{.hue = Interval{-0.7, 0}}, CenterCrop{}}), HasSubstr("-0.7"));
}

}  // namespace
}  // namespace yoke::feed
