#include "yoke/feed/decode.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "errors.hpp"
#include "image_files.hpp"
#include "yoke/feed/random.hpp"

namespace yoke::feed {
namespace {

using ::testing::HasSubstr;
using Bytes8 = std::vector<std::uint8_t>;

Image decoded(const File& file, const DecodeOptions& options = {}) {
  ImageDecoder decoder(options);
  Image image;
  decoder.open(file);
  decoder.read(image);
  return image;
}

Bytes8 part_of(const File& file, const Region& region, const DecodeOptions& options = {}) {
  ImageDecoder decoder(options);
  Image image;
  decoder.open(file);
  return rgb(image, decoder.read(region, image));
}

double mean_difference(const Bytes8& a, const Bytes8& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(int{a[i]} - int{b[i]});
  return sum / static_cast<double>(a.size());
}

File cut(const File& file, std::size_t by) {
  return {file.begin(), file.end() - static_cast<std::ptrdiff_t>(by)};
}

Region some_region(int width, int height, Draws& draws) {
  Region region;
  region.width = 1 + static_cast<int>(draws.below(static_cast<std::uint64_t>(width)));
  region.height = 1 + static_cast<int>(draws.below(static_cast<std::uint64_t>(height)));
  region.left = static_cast<int>(draws.below(static_cast<std::uint64_t>(width - region.width + 1)));
  region.top =
      static_cast<int>(draws.below(static_cast<std::uint64_t>(height - region.height + 1)));
  return region;
}

struct ChromaShape {
  int horizontal;
  int vertical;
};

TEST(Jpeg, PartsAreWhatTheWholeShowsThere) {
  constexpr std::array kShapes{ChromaShape{1, 1}, ChromaShape{2, 1}, ChromaShape{1, 2},
                               ChromaShape{2, 2}, ChromaShape{4, 1}, ChromaShape{4, 2}};
  Draws draws({.seed = 1, .epoch = 0, .index = 0});
  for (const auto& [horizontal, vertical] : kShapes) {
    for (const bool progressive : {false, true}) {
      const File file =
          jpeg_file(picture(203, 117),
                    {.horizontal = horizontal, .vertical = vertical, .progressive = progressive});
      const Image whole = decoded(file);
      for (int i = 0; i < 40; ++i) {
        const Region region = some_region(203, 117, draws);

        const Bytes8 part = part_of(file, region);

        ASSERT_TRUE(part == rgb(whole, region))
            << horizontal << 'x' << vertical << (progressive ? " progressive " : " ") << region.left
            << ' ' << region.top << ' ' << region.width << ' ' << region.height;
      }
    }
  }
}

TEST(Jpeg, ComesOutAsItWentInUpToItsLoss) {
  const Image original = picture(64, 48);

  const Image image = decoded(jpeg_file(original, {.quality = 98, .horizontal = 1, .vertical = 1}));

  EXPECT_EQ(image.whole(), original.whole());
  EXPECT_LT(mean_difference(rgb(image), rgb(original)), 3.0);
}

TEST(Jpeg, GrayIsRepeatedInAllChannels) {
  const Image image = decoded(jpeg_file(picture(40, 30), {.gray = true}));

  for (int x = 0; x < 40; ++x) {
    EXPECT_EQ(image.row(7)[4 * x], image.row(7)[4 * x + 1]);
    EXPECT_EQ(image.row(7)[4 * x], image.row(7)[4 * x + 2]);
  }
}

TEST(Jpeg, CmykOfAdobesKindIsTakenAsInverted) {
  Image ink(32, 32);  // as it stands in the file: 255 - C, 255 - M, 255 - Y, 255 - K
  for (int y = 0; y < 32; ++y) {
    for (int x = 0; x < 32; ++x) {
      const std::array<std::uint8_t, 4> pixel{200, 100, 50, 255};
      std::ranges::copy(pixel, ink.row(y) + 4 * x);
    }
  }

  const Image image = decoded(jpeg_file(ink, {.quality = 100, .cmyk = true}));

  EXPECT_NEAR(image.row(9)[4 * 9 + 0], 200, 3);
  EXPECT_NEAR(image.row(9)[4 * 9 + 1], 100, 3);
  EXPECT_NEAR(image.row(9)[4 * 9 + 2], 50, 3);
}

TEST(Jpeg, FactsAreThoseOfItsHead) {
  ImageDecoder decoder;

  const ImageFacts facts =
      decoder.open(jpeg_file(picture(60, 40), {.progressive = true, .orientation = 6}));

  EXPECT_EQ(facts.format, ImageFormat::jpeg);
  EXPECT_EQ(facts.width, 60);
  EXPECT_EQ(facts.height, 40);
  EXPECT_EQ(facts.orientation, 6);
  EXPECT_TRUE(facts.progressive);
}

// The place of the stored pixel (0, 0) in the upright image: the corners of EXIF's eight cases.
TEST(Orientation, IsIgnoredUnlessAskedForAndThenTurnsTheImageUpright) {
  struct Case {
    int orientation;
    int left, top;  // where the marked corner is: 0 or 1 of the width and height
  };
  constexpr std::array kCases{Case{1, 0, 0}, Case{2, 1, 0}, Case{3, 1, 1}, Case{4, 0, 1},
                              Case{5, 0, 0}, Case{6, 1, 0}, Case{7, 1, 1}, Case{8, 0, 1}};
  Image stored(48, 32);
  for (int y = 0; y < 32; ++y) {
    for (int x = 0; x < 48; ++x) {
      const auto value = static_cast<std::uint8_t>(x < 16 && y < 16 ? 255 : 0);
      for (int channel = 0; channel < 4; ++channel) stored.row(y)[4 * x + channel] = value;
    }
  }
  for (const auto& [orientation, left, top] : kCases) {
    const File file = jpeg_file(stored, {.orientation = orientation});

    const Image ignored = decoded(file);
    const Image upright = decoded(file, {.exif = Exif::apply});

    EXPECT_EQ(ignored.width(), 48);
    EXPECT_EQ(upright.width(), orientation >= 5 ? 32 : 48) << orientation;
    const int x = left == 0 ? 4 : upright.width() - 5;
    const int y = top == 0 ? 4 : upright.height() - 5;
    EXPECT_GT(upright.row(y)[4 * x], 200) << orientation;
  }
}

TEST(Orientation, PartsOfAnUprightImageAreWhatTheWholeShowsThere) {
  Draws draws({.seed = 2, .epoch = 0, .index = 0});
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const File file = jpeg_file(picture(90, 61), {.orientation = orientation});
    const Image whole = decoded(file, {.exif = Exif::apply});
    for (int i = 0; i < 10; ++i) {
      const Region region = some_region(whole.width(), whole.height(), draws);

      EXPECT_TRUE(part_of(file, region, {.exif = Exif::apply}) == rgb(whole, region))
          << orientation;
    }
  }
}

TEST(Truncated, B044JpegIsRefusedWithItsSizeWhateverPartIsRead) {
  const File file = jpeg_file(picture(200, 150));
  const File shorter = cut(file, 54);

  const Error whole = error_of([&] { (void)decoded(shorter); });
  const Error top = error_of([&] { (void)part_of(shorter, {0, 0, 20, 10}); });

  EXPECT_EQ(whole.code(), Code::corrupt_data);
  EXPECT_THAT(whole.message(), HasSubstr(std::to_string(shorter.size()) + " bytes"));
  EXPECT_EQ(top.message(), whole.message());
}

TEST(Truncated, JpegIsFilledUpWhereThePolicySaysSo) {
  const File file = jpeg_file(picture(200, 150));

  const Image image = decoded(cut(file, file.size() / 2), {.truncated = Truncated::fill});

  EXPECT_TRUE(rgb(image, {0, 0, 200, 16}) == rgb(decoded(file), {0, 0, 200, 16}));
}

TEST(Truncated, FileThatEndsAnywhereIsAnErrorAndTheDecoderGoesOn) {
  const File jpeg = jpeg_file(picture(50, 40));
  const File progressive = jpeg_file(picture(50, 40), {.progressive = true});
  const Bytes8 pixels = rgb(picture(50, 40));
  const File png = png_file(50, 40, {}, std::as_bytes(std::span(pixels)));
  ImageDecoder decoder;
  for (const File& file : {jpeg, progressive, png}) {
    for (std::size_t length = 0; length + 20 < file.size(); length += 7) {
      const auto start = std::span(file).first(length);
      Image out;

      EXPECT_THROW(
          {
            decoder.open(start);
            decoder.read(out);
          },
          Error)
          << length << " of " << file.size();
    }
    Image out;
    decoder.open(file);
    decoder.read(out);
    EXPECT_EQ(out.width(), 50);
  }
}

// A small JPEG whose head says that it is this large.
File bomb(unsigned side) {
  File file = jpeg_file(picture(16, 16));
  for (std::size_t i = 0; i + 8 < file.size(); ++i) {
    if (file[i] != std::byte{0xFF} || file[i + 1] != std::byte{0xC0}) continue;
    for (std::size_t at = i + 5; at < i + 9; at += 2) {
      file[at] = static_cast<std::byte>(side >> 8);
      file[at + 1] = static_cast<std::byte>(side & 255);
    }
    return file;
  }
  return {};
}

TEST(Decoder, RefusesABombBeforeMemoryIsTaken) {
  const Error large = error_of([&] { (void)decoded(bomb(65'000)); });
  const Error largest = error_of([&] { (void)decoded(bomb(65'535)); });

  EXPECT_EQ(large.code(), Code::unsupported);
  EXPECT_THAT(large.message(), HasSubstr("65000 x 65000"));
  EXPECT_THAT(largest.message(), HasSubstr("65500 pixels"));
}

TEST(Decoder, NamesTheFirstBytesOfWhatItDoesNotKnow) {
  const File gif{std::byte{'G'}, std::byte{'I'}, std::byte{'F'}, std::byte{'8'}, std::byte{'9'}};

  const Error error = error_of([&] { (void)decoded(gif); });

  EXPECT_EQ(error.code(), Code::unsupported);
  EXPECT_THAT(error.message(), HasSubstr("47 49 46 38"));
}

TEST(Decoder, GoesByTheBytesAndSaysThatAnEmptyFileIsEmpty) {
  EXPECT_EQ(format_of(jpeg_file(picture(8, 8))), ImageFormat::jpeg);
  EXPECT_THAT(error_of([] { (void)decoded({}); }).message(), HasSubstr("0 bytes"));
}

TEST(Png, B046InterlacedIsWhatPlainIs) {
  const Bytes8 rows = rgb(picture(8, 8));
  const auto bytes = std::as_bytes(std::span(rows));

  const Image plain = decoded(png_file(8, 8, {}, bytes));
  const Image interlaced = decoded(png_file(8, 8, {.interlaced = true}, bytes));

  EXPECT_EQ(rgb(plain), rows);
  EXPECT_EQ(rgb(interlaced), rows);
}

TEST(Png, B046SixteenBitsGiveTheirUpperEight) {
  const std::array<std::uint16_t, 3> values{0, 256, 65'535};

  const Image image = decoded(png_file(3, 1, {.color = SPNG_COLOR_TYPE_GRAYSCALE, .bits = 16},
                                       std::as_bytes(std::span(values))));

  EXPECT_EQ(rgb(image), (Bytes8{0, 0, 0, 1, 1, 1, 255, 255, 255}));
}

TEST(Png, B046PaletteIsLookedUpAndAlphaDropped) {
  spng_plte palette{};
  palette.n_entries = 2;
  palette.entries[0] = {10, 20, 30, 255};
  palette.entries[1] = {200, 100, 50, 255};
  spng_trns transparency{};
  transparency.n_type3_entries = 1;
  transparency.type3_alpha[0] = 0;
  const Bytes8 indices{0, 1};
  const Bytes8 gray_alpha{77, 0, 88, 255};

  const Image from_palette =
      decoded(png_file(2, 1, {.color = SPNG_COLOR_TYPE_INDEXED}, std::as_bytes(std::span(indices)),
                       &palette, &transparency));
  const Image from_gray = decoded(png_file(2, 1, {.color = SPNG_COLOR_TYPE_GRAYSCALE_ALPHA},
                                           std::as_bytes(std::span(gray_alpha))));

  EXPECT_EQ(rgb(from_palette), (Bytes8{10, 20, 30, 200, 100, 50}));
  EXPECT_EQ(rgb(from_gray), (Bytes8{77, 77, 77, 88, 88, 88}));
}

}  // namespace
}  // namespace yoke::feed
