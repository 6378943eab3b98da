#include "resize_kernels.hpp"

#include <algorithm>
#include <array>

#include "yoke/feed/image.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#define YOKE_AVX2_KERNELS
#include <immintrin.h>
#endif

namespace yoke::feed {
namespace {

constexpr int kPixelBytes = Image::kPixelBytes;

std::uint8_t rounded(int sum, int bits) {
  return static_cast<std::uint8_t>(std::clamp((sum + (1 << (bits - 1))) >> bits, 0, 255));
}

void sum_columns_plain(const FilterTaps& taps, const std::uint8_t* from, std::uint8_t* to) {
  for (std::size_t x = 0; x < taps.first.size(); ++x, to += kPixelBytes) {
    const std::int16_t* weights = taps.of(static_cast<int>(x));
    std::array<int, kPixelBytes> sums{};
    const std::uint8_t* pixel = from + std::ptrdiff_t{taps.first[x]} * kPixelBytes;
    for (int i = 0; i < taps.used[x]; ++i, pixel += kPixelBytes) {
      for (std::size_t channel = 0; channel < kPixelBytes; ++channel) {
        sums[channel] += pixel[channel] * weights[i];
      }
    }
    for (std::size_t channel = 0; channel < kPixelBytes; ++channel) {
      to[channel] = rounded(sums[channel], taps.bits);
    }
  }
}

void sum_rows_plain(const RowSum& sum, std::uint8_t* to) {
  for (std::size_t x = 0; x < sum.bytes; ++x) {
    int total = 0;
    for (int i = 0; i < sum.used; ++i) {
      total += sum.rows[static_cast<std::size_t>(i) * sum.stride + x] * sum.weights[i];
    }
    to[x] = rounded(total, sum.bits);
  }
}

#ifdef YOKE_AVX2_KERNELS

// Two neighbouring pixels side by side, channel by channel, as 16 bits: what madd sums in pairs.
// The lower half takes pixels 0 and 1, the upper one 2 and 3. -1 gives 0.
__attribute__((target("avx2"))) inline __m256i pixel_pairs() {
  return _mm256_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1,  //
                          8, -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1);
}

__attribute__((target("avx2"))) inline __m256i four_weights(const std::int16_t* weights) {
  const __m256i all =
      _mm256_broadcastq_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(weights)));
  return _mm256_permutevar8x32_epi32(all, _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
}

__attribute__((target("avx2"))) void sum_columns_avx2(const FilterTaps& taps,
                                                      const std::uint8_t* from, std::uint8_t* to) {
  const __m256i pairs = pixel_pairs();
  const __m128i half = _mm_set1_epi32(1 << (taps.bits - 1));
  const __m128i bits = _mm_cvtsi32_si128(taps.bits);
  const std::int16_t* weights = taps.weights.data();
  for (std::size_t x = 0; x < taps.first.size(); ++x, weights += taps.count) {
    const std::uint8_t* pixels = from + std::ptrdiff_t{taps.first[x]} * kPixelBytes;
    __m256i sums = _mm256_setzero_si256();
    for (int i = 0; i < taps.used[x]; i += 4) {
      const __m256i four = _mm256_broadcastsi128_si256(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(pixels + i * kPixelBytes)));
      sums = _mm256_add_epi32(
          sums, _mm256_madd_epi16(_mm256_shuffle_epi8(four, pairs), four_weights(weights + i)));
    }
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    sum = _mm_sra_epi32(_mm_add_epi32(sum, half), bits);
    sum = _mm_packus_epi16(_mm_packs_epi32(sum, sum), sum);
    const int pixel = _mm_cvtsi128_si32(sum);
    __builtin_memcpy(to + x * kPixelBytes, &pixel, sizeof(pixel));
  }
}

struct Sums32 {
  __m256i a, b, c, d;  // of 32 bytes, in the order in which unpacking leaves them
};

__attribute__((target("avx2"))) inline __m256i load32(const std::uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

__attribute__((target("avx2"))) inline void add_two_rows(__m256i first, __m256i second,
                                                         __m256i weights, Sums32& sums) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i low = _mm256_unpacklo_epi8(first, second);
  const __m256i high = _mm256_unpackhi_epi8(first, second);
  sums.a = _mm256_add_epi32(sums.a, _mm256_madd_epi16(_mm256_unpacklo_epi8(low, zero), weights));
  sums.b = _mm256_add_epi32(sums.b, _mm256_madd_epi16(_mm256_unpackhi_epi8(low, zero), weights));
  sums.c = _mm256_add_epi32(sums.c, _mm256_madd_epi16(_mm256_unpacklo_epi8(high, zero), weights));
  sums.d = _mm256_add_epi32(sums.d, _mm256_madd_epi16(_mm256_unpackhi_epi8(high, zero), weights));
}

__attribute__((target("avx2"))) inline __m256i rounded_bytes(const Sums32& sums, int bits) {
  const __m256i half = _mm256_set1_epi32(1 << (bits - 1));
  const __m128i shift = _mm_cvtsi32_si128(bits);
  const auto down = [&](__m256i sum) __attribute__((target("avx2"))) {
    return _mm256_sra_epi32(_mm256_add_epi32(sum, half), shift);
  };
  return _mm256_packus_epi16(_mm256_packs_epi32(down(sums.a), down(sums.b)),
                             _mm256_packs_epi32(down(sums.c), down(sums.d)));
}

__attribute__((target("avx2"))) inline __m256i two_weights(std::int16_t first,
                                                           std::int16_t second) {
  const auto low = static_cast<std::uint16_t>(first);
  const auto high = static_cast<std::uint16_t>(second);
  return _mm256_set1_epi32(static_cast<int>(low | static_cast<std::uint32_t>(high) << 16));
}

__attribute__((target("avx2"))) void sum_rows_avx2(const RowSum& sum, std::uint8_t* to) {
  for (std::size_t x = 0; x < sum.bytes; x += 32) {
    const __m256i zero = _mm256_setzero_si256();
    Sums32 sums{zero, zero, zero, zero};
    const std::uint8_t* row = sum.rows + x;
    int i = 0;
    for (; i + 1 < sum.used; i += 2, row += 2 * sum.stride) {
      add_two_rows(load32(row), load32(row + sum.stride),
                   two_weights(sum.weights[i], sum.weights[i + 1]), sums);
    }
    if (i < sum.used) add_two_rows(load32(row), zero, two_weights(sum.weights[i], 0), sums);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + x), rounded_bytes(sums, sum.bits));
  }
}

#endif

}  // namespace

ResizeKernels plain_resize_kernels() noexcept { return {sum_columns_plain, sum_rows_plain}; }

ResizeKernels resize_kernels() noexcept {
#ifdef YOKE_AVX2_KERNELS
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return {sum_columns_avx2, sum_rows_avx2};
#endif
  return plain_resize_kernels();
}

}  // namespace yoke::feed
