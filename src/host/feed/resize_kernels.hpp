#pragma once

#include <cstddef>
#include <cstdint>

#include "filter_taps.hpp"

namespace yoke::feed {

/// Sums over one row's pixels: `to` gets one pixel for each output of the taps. Reads up to 16
/// bytes beyond the last pixel of `from`.
using SumColumns = void (*)(const FilterTaps& taps, const std::uint8_t* from, std::uint8_t* to);

/// Sums over rows: byte i of `to` from byte i of `rows`, `stride` bytes apart. Writes multiples of
/// 32 bytes, and reads as many from each row.
struct RowSum {
  const std::uint8_t* rows = nullptr;
  std::size_t stride = 0;
  const std::int16_t* weights = nullptr;
  int used = 0;
  int bits = 0;
  std::size_t bytes = 0;
};
using SumRows = void (*)(const RowSum& sum, std::uint8_t* to);

struct ResizeKernels {
  SumColumns sum_columns;
  SumRows sum_rows;
};

/// For every machine, and what the others are compared with.
[[nodiscard]] ResizeKernels plain_resize_kernels() noexcept;

/// The fastest that this machine has.
[[nodiscard]] ResizeKernels resize_kernels() noexcept;

}  // namespace yoke::feed
