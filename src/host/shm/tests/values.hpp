#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "yoke/shm/shm.hpp"

namespace yoke::shm::testing {

inline constexpr Dtype kAllDtypes[] = {Dtype::float32,  Dtype::float64, Dtype::float16,
                                       Dtype::bfloat16, Dtype::int8,    Dtype::uint8,
                                       Dtype::int32,    Dtype::int64,   Dtype::boolean};
inline constexpr Reduction kAllReductions[] = {
    Reduction::sum, Reduction::product, Reduction::minimum, Reduction::maximum, Reduction::mean};

/// Nearest number with `fraction_bits` after the leading bit, ties to even; smallest step `least`.
inline double rounded(double x, int fraction_bits, int least_exponent) {
  if (x == 0.0 || !std::isfinite(x)) return x;
  const int exponent = std::max(std::ilogb(x) - fraction_bits, least_exponent);
  return std::ldexp(std::nearbyint(std::ldexp(x, -exponent)), exponent);
}

/// Bits of a value that a 16-bit float can hold, by arithmetic: independent of the library's way.
inline std::uint16_t small_float_bits(double x, int fraction_bits, int exponent_bias) {
  const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const double magnitude = std::fabs(x);
  if (magnitude == 0.0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), 1 - exponent_bias);
  const auto fraction = static_cast<int>(std::ldexp(magnitude, fraction_bits - exponent));
  const int hidden = 1 << fraction_bits;
  const int biased = fraction >= hidden ? exponent + exponent_bias : 0;
  return static_cast<std::uint16_t>(sign | (biased << fraction_bits) | (fraction & (hidden - 1)));
}

inline double small_float_value(std::uint16_t bits, int fraction_bits, int exponent_bias) {
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const int biased = (bits & 0x7fff) >> fraction_bits;
  const double magnitude = biased == 0 ? std::ldexp(fraction, 1 - exponent_bias - fraction_bits)
                                       : std::ldexp(fraction + (1 << fraction_bits),
                                                    biased - exponent_bias - fraction_bits);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

template <class T>
void put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(value));
}

template <class T>
double get(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return static_cast<double>(value);
}

/// Writes `value` as one element, rounded or wrapped as the dtype does.
inline void encode(Dtype dtype, double value, std::byte* to) {
  const auto whole = [&] { return static_cast<std::int64_t>(value); };
  switch (dtype) {
    case Dtype::float32: return put(to, static_cast<float>(value));
    case Dtype::float64: return put(to, value);
    case Dtype::float16: return put(to, small_float_bits(rounded(value, 10, -24), 10, 15));
    case Dtype::bfloat16: return put(to, small_float_bits(rounded(value, 7, -133), 7, 127));
    case Dtype::int8: return put(to, static_cast<std::int8_t>(whole()));
    case Dtype::uint8: return put(to, static_cast<std::uint8_t>(whole()));
    case Dtype::int32: return put(to, static_cast<std::int32_t>(whole()));
    case Dtype::int64: return put(to, whole());
    case Dtype::boolean: return put(to, static_cast<std::uint8_t>(value != 0.0));
  }
}

inline double decode(Dtype dtype, const std::byte* from) {
  switch (dtype) {
    case Dtype::float32: return get<float>(from);
    case Dtype::float64: return get<double>(from);
    case Dtype::float16: {
      std::uint16_t bits = 0;
      std::memcpy(&bits, from, sizeof(bits));
      return small_float_value(bits, 10, 15);
    }
    case Dtype::bfloat16: {
      std::uint16_t bits = 0;
      std::memcpy(&bits, from, sizeof(bits));
      return small_float_value(bits, 7, 127);
    }
    case Dtype::int8: return get<std::int8_t>(from);
    case Dtype::uint8: return get<std::uint8_t>(from);
    case Dtype::int32: return get<std::int32_t>(from);
    case Dtype::int64: return get<std::int64_t>(from);
    case Dtype::boolean: return get<std::uint8_t>(from);
  }
  return 0.0;
}

/// Element `i` of rank `rank` before a reduction: small, so that every result is exact.
inline double value_of(Dtype dtype, Reduction reduction, int rank, std::size_t i) {
  const auto mixed = i * 7 + static_cast<std::size_t>(rank) * 3;
  if (dtype == Dtype::boolean) return mixed % 3 == 0 ? 1.0 : 0.0;
  if (reduction == Reduction::product) return 1.0 + static_cast<double>(mixed % 2);
  return 1.0 + static_cast<double>(mixed % 5);
}

/// What a reduction over `ranks` ranks must give at element `i`.
inline double reduced_value(Dtype dtype, Reduction reduction, int ranks, std::size_t i) {
  double result = value_of(dtype, reduction, 0, i);
  for (int rank = 1; rank < ranks; ++rank) {
    const double x = value_of(dtype, reduction, rank, i);
    switch (reduction) {
      case Reduction::product: result *= x; break;
      case Reduction::minimum: result = std::fmin(result, x); break;
      case Reduction::maximum: result = std::fmax(result, x); break;
      case Reduction::sum:
      case Reduction::mean: result += x; break;
    }
  }
  if (reduction != Reduction::mean) return result;
  if (dtype == Dtype::float64) return result / ranks;
  return static_cast<double>(static_cast<float>(result) / static_cast<float>(ranks));
}

/// `count` elements, the i-th being of(i).
template <class Of>
std::vector<std::byte> encoded(Dtype dtype, std::size_t count, const Of& of) {
  std::vector<std::byte> bytes(count * size_of(dtype));
  for (std::size_t i = 0; i < count; ++i) encode(dtype, of(i), bytes.data() + i * size_of(dtype));
  return bytes;
}

}  // namespace yoke::shm::testing
