#include "yoke/feed/resize.hpp"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../resize_kernels.hpp"
#include "errors.hpp"
#include "image_files.hpp"

namespace yoke::feed {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

Image resized(const Image& image, const Region& region, const Resizer::Target& target) {
  Resizer resizer;
  Image out;
  resizer.resize(image, region, target, out);
  return out;
}

TEST(Resize, B047FiltersWhereItShrinksAsPillowDoes) {
  constexpr std::array<std::uint8_t, 8> kRow{0, 255, 255, 0, 0, 255, 255, 0};
  Image image(8, 8);
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 8; ++x) {
      for (int channel = 0; channel < 4; ++channel) {
        image.row(y)[4 * x + channel] = kRow[static_cast<std::size_t>(x)];
      }
    }
  }

  const Image half = resized(image, image.whole(), {.width = 2, .height = 2});

  EXPECT_THAT(rgb(half), Each(137));  // 136.607 rounded; without a filter 255
}

TEST(Resize, LeavesAFlatAreaAsItIs) {
  Image image(37, 23);
  std::fill_n(image.row(0), 23 * image.row_bytes(), std::uint8_t{201});

  for (const Interpolation interpolation :
       {Interpolation::nearest, Interpolation::bilinear, Interpolation::bicubic}) {
    for (const int size : {1, 2, 5, 23, 50, 200}) {
      const Image out =
          resized(image, image.whole(),
                  {.width = size, .height = size + 1, .interpolation = interpolation});
      EXPECT_THAT(rgb(out), Each(201)) << size;
    }
  }
}

TEST(Resize, ToTheSameSizeChangesNothing) {
  const Image image = picture(31, 17);

  EXPECT_EQ(rgb(resized(image, image.whole(), {.width = 31, .height = 17})), rgb(image));
}

TEST(Resize, TakesNothingFromOutsideTheRegion) {
  const Image image = picture(60, 50);
  const Region region{11, 7, 30, 25};
  Image alone(30, 25);
  for (int y = 0; y < 25; ++y) {
    std::copy_n(image.row(y + 7) + 4 * 11, alone.row_bytes(), alone.row(y));
  }
  for (const int size : {5, 24, 47}) {
    const Resizer::Target target{.width = size, .height = size};

    EXPECT_EQ(rgb(resized(image, region, target)), rgb(resized(alone, alone.whole(), target)));
  }
}

TEST(Resize, AWindowIsThatPartOfTheWholeResult) {
  const Image image = picture(120, 90);
  for (const int size : {20, 64, 150}) {
    Resizer::Target target{.width = size, .height = size};
    const Image whole = resized(image, image.whole(), target);
    target.window = {size / 4, size / 5, size / 2, size / 3};

    const Image part = resized(image, image.whole(), target);

    EXPECT_EQ(rgb(part), rgb(whole, target.window));
    const Region needed = needed_for(image.whole(), target);
    EXPECT_GE(needed.left, 0);
    EXPECT_LE(needed.right(), 120);
    EXPECT_LT(needed.width, 120);
  }
}

TEST(ResizeKernels, OfThisMachineGiveWhatThePlainOnesGive) {
  const Image image = picture(301, 3);
  for (const int result : {1, 7, 100, 224, 301, 640}) {
    const Axis axis{301, result, 0, result};
    for (const Interpolation interpolation : {Interpolation::bilinear, Interpolation::bicubic}) {
      const FilterTaps taps = filter_taps(axis, interpolation);
      Image fast(result, 1);
      Image plain(result, 1);
      resize_kernels().sum_columns(taps, image.row(1), fast.row(0));
      plain_resize_kernels().sum_columns(taps, image.row(1), plain.row(0));
      EXPECT_EQ(rgb(fast), rgb(plain)) << result;
    }
  }
  for (const int used : {1, 2, 3}) {
    const std::array<std::int16_t, 3> weights{-700, 12'000, 5'084};
    const RowSum sum{image.row(0), image.row_bytes(), weights.data(), used, 14, image.row_bytes()};
    Image fast(301, 1);
    Image plain(301, 1);
    resize_kernels().sum_rows(sum, fast.row(0));
    plain_resize_kernels().sum_rows(sum, plain.row(0));
    EXPECT_EQ(rgb(fast), rgb(plain)) << used;
  }
}

TEST(Resize, RefusesSizesAndRegionsThatCannotBe) {
  const Image image = picture(8, 8);

  const Error no_size = error_of([&] { (void)resized(image, image.whole(), {}); });
  const Error outside =
      error_of([&] { (void)resized(image, {4, 4, 8, 8}, {.width = 2, .height = 2}); });

  EXPECT_EQ(no_size.code(), Code::invalid_argument);
  EXPECT_THAT(outside.message(), HasSubstr("the image has 8 x 8"));
}

}  // namespace
}  // namespace yoke::feed
