#include "augment.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numbers>

#include "color.hpp"

namespace yoke::feed {
namespace {

using Table = std::array<std::uint8_t, 256>;
using Histogram = std::array<std::int64_t, 256>;

constexpr int kChannels = 3;

std::uint8_t clipped(std::int64_t value) {
  return static_cast<std::uint8_t>(std::clamp<std::int64_t>(value, 0, 255));
}

void look_up(Image& image, const std::array<Table, kChannels>& tables) {
  for (int y = 0; y < image.height(); ++y) {
    std::uint8_t* pixel = image.row(y);
    for (int x = 0; x < image.width(); ++x, pixel += Image::kPixelBytes) {
      for (int channel = 0; channel < kChannels; ++channel)
        pixel[channel] = tables[static_cast<std::size_t>(channel)][pixel[channel]];
    }
  }
}

void look_up(Image& image, const Table& table) { look_up(image, {table, table, table}); }

std::array<Histogram, kChannels> histograms(const Image& image) {
  std::array<Histogram, kChannels> counts{};
  for (int y = 0; y < image.height(); ++y) {
    const std::uint8_t* pixel = image.row(y);
    for (int x = 0; x < image.width(); ++x, pixel += Image::kPixelBytes) {
      for (int channel = 0; channel < kChannels; ++channel)
        ++counts[static_cast<std::size_t>(channel)][pixel[channel]];
    }
  }
  return counts;
}

Table same() {
  Table table{};
  for (std::size_t value = 0; value < table.size(); ++value)
    table[value] = static_cast<std::uint8_t>(value);
  return table;
}

// Stretches what occurs over 0 to 255.
Table stretched(const Histogram& counts) {
  const auto occurs = [](std::int64_t count) { return count > 0; };
  const auto low = std::ranges::find_if(counts, occurs) - counts.begin();
  const auto high = counts.rend() - std::find_if(counts.rbegin(), counts.rend(), occurs) - 1;
  Table table = same();
  if (high <= low) return table;
  const double scale = 255.0 / static_cast<double>(high - low);
  const double offset = static_cast<double>(-low) * scale;
  for (std::size_t value = 0; value < table.size(); ++value)
    table[value] = clipped(static_cast<int>(static_cast<double>(value) * scale + offset));
  return table;
}

// Makes all values about equally frequent.
Table levelled(const Histogram& counts) {
  std::int64_t pixels = 0;
  std::int64_t last = 0;  // of the largest value that occurs
  for (const std::int64_t count : counts) {
    pixels += count;
    if (count > 0) last = count;
  }
  Table table = same();
  const std::int64_t step = (pixels - last) / 255;
  if (step == 0) return table;
  std::int64_t below = step / 2;
  for (std::size_t value = 0; value < table.size(); ++value) {
    table[value] = clipped(below / step);
    below += counts[value];
  }
  return table;
}

// Pillow rounds to 15 digits, so that a quarter turn has no trace of the other direction.
double rounded(double value) {
  constexpr double kDigits = 1e15;
  return std::nearbyint(value * kDigits) / kDigits;
}

std::int64_t fixed(double value) {
  return static_cast<std::int64_t>(std::floor(value * 65536.0 + 0.5));
}

// The center counts five of thirteen; pixels at the border stay.
void smooth(const Image& image, Image& out) {
  out.reshape(image.width(), image.height());
  for (int y = 0; y < image.height(); ++y) {
    std::memcpy(out.row(y), image.row(y), image.row_bytes());
    if (y == 0 || y + 1 == image.height()) continue;
    for (int x = 1; x + 1 < image.width(); ++x) {
      for (int channel = 0; channel < kChannels; ++channel) {
        const std::ptrdiff_t at = std::ptrdiff_t{x} * Image::kPixelBytes + channel;
        int sum = 4 * image.row(y)[at];
        for (int down = -1; down <= 1; ++down) {
          const std::uint8_t* row = image.row(y + down) + at;
          sum += row[-Image::kPixelBytes] + row[0] + row[Image::kPixelBytes];
        }
        out.row(y)[at] = static_cast<std::uint8_t>((2 * sum + 13) / 26);
      }
    }
  }
}

}  // namespace

AffineMatrix shear_matrix(double along_x, double along_y) { return {1, along_x, 0, along_y, 1, 0}; }

AffineMatrix translate_matrix(double right, double down) { return {1, 0, -right, 0, 1, -down}; }

AffineMatrix rotate_matrix(double degrees, int width, int height) {
  const double angle = -degrees * std::numbers::pi / 180;
  const double cosine = rounded(std::cos(angle));
  const double sine = rounded(std::sin(angle));
  const double x = width / 2.0;
  const double y = height / 2.0;
  return {cosine, sine, -cosine * x - sine * y + x, -sine, cosine, sine * x - cosine * y + y};
}

void warp(const Image& image, const AffineMatrix& matrix, Image& out) {
  const auto& m = matrix;
  out.reshape(image.width(), image.height());
  std::int64_t row_x = fixed(m[2] + m[0] * 0.5 + m[1] * 0.5);
  std::int64_t row_y = fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
  for (int y = 0; y < image.height(); ++y, row_x += fixed(m[1]), row_y += fixed(m[4])) {
    std::uint8_t* pixel = out.row(y);
    std::int64_t from_x = row_x;
    std::int64_t from_y = row_y;
    for (int x = 0; x < image.width(); ++x, pixel += Image::kPixelBytes) {
      const std::int64_t column = from_x >> 16;
      const std::int64_t row = from_y >> 16;
      const bool inside = column >= 0 && column < image.width() && row >= 0 && row < image.height();
      if (inside) {
        std::memcpy(pixel, image.row(static_cast<int>(row)) + column * Image::kPixelBytes,
                    Image::kPixelBytes);
      } else {
        std::memset(pixel, 0, Image::kPixelBytes);
      }
      from_x += fixed(m[0]);
      from_y += fixed(m[3]);
    }
  }
}

void adjust_sharpness(Image& image, double factor, Image& spare) {
  smooth(image, spare);
  mix(image, spare, factor);
}

void posterize(Image& image, int bits) {
  Table table = same();
  for (std::uint8_t& value : table) value &= static_cast<std::uint8_t>(0xFF << (8 - bits));
  look_up(image, table);
}

void solarize(Image& image, double threshold) {
  Table table = same();
  for (std::uint8_t& value : table) {
    if (!(value < threshold)) value = static_cast<std::uint8_t>(255 - value);
  }
  look_up(image, table);
}

void autocontrast(Image& image) {
  const auto counts = histograms(image);
  look_up(image, {stretched(counts[0]), stretched(counts[1]), stretched(counts[2])});
}

void equalize(Image& image) {
  const auto counts = histograms(image);
  look_up(image, {levelled(counts[0]), levelled(counts[1]), levelled(counts[2])});
}

}  // namespace yoke::feed
