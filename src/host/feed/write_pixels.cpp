#include "write_pixels.hpp"

#include <array>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#define YOKE_SSSE3_KERNELS
#include <immintrin.h>
#endif

namespace yoke::feed {
namespace {

constexpr std::ptrdiff_t kFrom = Image::kPixelBytes;
constexpr int kTo = 3;

void pack_row_plain(const std::uint8_t* from, std::ptrdiff_t step, int width, std::uint8_t* to) {
  for (int x = 0; x < width; ++x, from += step, to += kTo) {
    for (int channel = 0; channel < kTo; ++channel) to[channel] = from[channel];
  }
}

#ifdef YOKE_SSSE3_KERNELS
// Four pixels at a time: 16 bytes in, 12 out. The last pixels go one by one, since the store is of
// 16 bytes.
__attribute__((target("ssse3"))) void pack_row_ssse3(const std::uint8_t* from, bool mirrored,
                                                     int width, std::uint8_t* to) {
  const __m128i forward = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  const __m128i backward = _mm_setr_epi8(12, 13, 14, 8, 9, 10, 4, 5, 6, 0, 1, 2, -1, -1, -1, -1);
  int x = 0;
  for (; x + 6 <= width; x += 4, to += 4 * kTo) {
    const std::uint8_t* pixels = from + (mirrored ? width - 4 - x : x) * kFrom;
    const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(pixels));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                     _mm_shuffle_epi8(four, mirrored ? backward : forward));
  }
  const std::uint8_t* rest = from + (mirrored ? width - 1 - x : x) * kFrom;
  pack_row_plain(rest, mirrored ? -kFrom : kFrom, width - x, to);
}

bool has_ssse3() noexcept {
  static const bool has = __builtin_cpu_supports("ssse3") != 0;
  return has;
}
#endif

void pack_row(const std::uint8_t* from, bool mirrored, int width, std::uint8_t* to) {
#ifdef YOKE_SSSE3_KERNELS
  if (has_ssse3()) return pack_row_ssse3(from, mirrored, width, to);
#endif
  pack_row_plain(mirrored ? from + (width - 1) * kFrom : from, mirrored ? -kFrom : kFrom, width,
                 to);
}

// Where the values of one row go: the first one's place, and the steps to the next pixel's and the
// next channel's.
struct Places {
  std::size_t first;
  std::size_t pixel;
  std::size_t channel;
};

Places places_of(const Image& image, int row, PixelLayout layout) {
  const auto width = static_cast<std::size_t>(image.width());
  const auto before = static_cast<std::size_t>(row) * width;
  if (layout == PixelLayout::hwc) return {before * kTo, kTo, 1};
  return {before, 1, width * static_cast<std::size_t>(image.height())};
}

// write(channel, byte, place) for each value.
template <class Write>
void each_value(const Image& image, bool mirrored, PixelLayout layout, const Write& write) {
  for (int y = 0; y < image.height(); ++y) {
    const Places places = places_of(image, y, layout);
    const std::uint8_t* from = image.row(y) + (mirrored ? (image.width() - 1) * kFrom : 0);
    for (std::size_t channel = 0; channel < kTo; ++channel) {
      const std::uint8_t* value = from + channel;
      std::size_t place = places.first + channel * places.channel;
      for (int x = 0; x < image.width(); ++x, place += places.pixel) {
        write(channel, *value, place);
        value += mirrored ? -kFrom : kFrom;
      }
    }
  }
}

}  // namespace

void write_bytes(const Image& image, bool mirrored, PixelLayout layout, std::span<std::byte> out) {
  if (layout == PixelLayout::chw) {
    each_value(image, mirrored, layout, [&](std::size_t, std::uint8_t value, std::size_t place) {
      out[place] = std::byte{value};
    });
    return;
  }
  auto* to = reinterpret_cast<std::uint8_t*>(out.data());
  for (int y = 0; y < image.height(); ++y) {
    pack_row(image.row(y), mirrored, image.width(), to);
    to += static_cast<std::size_t>(image.width()) * kTo;
  }
}

void write_floats(const Image& image, bool mirrored, PixelLayout layout,
                  const transforms::Normalize& normalize, std::span<float> out) {
  // 768 results at most: a look-up gives the very bits of the formula.
  std::array<std::array<float, 256>, 3> table{};
  for (std::size_t channel = 0; channel < table.size(); ++channel) {
    for (std::size_t value = 0; value < 256; ++value) {
      table[channel][value] =
          (static_cast<float>(value) / 255.0F - normalize.mean[channel]) / normalize.std[channel];
    }
  }
  each_value(image, mirrored, layout,
             [&](std::size_t channel, std::uint8_t value, std::size_t place) {
               out[place] = table[channel][value];
             });
}

}  // namespace yoke::feed
