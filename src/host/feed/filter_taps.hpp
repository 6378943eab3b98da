#pragma once

#include <cstdint>
#include <vector>

#include "yoke/feed/resize.hpp"

namespace yoke::feed {

/// One direction of a resize: `length` pixels, of which those from `first` to `end` of the result
/// are wanted.
struct Axis {
  int length = 0;
  int result = 0;
  int first = 0;
  int end = 0;
};

/// Which pixels an output pixel is a sum of, and their weights as integers.
///
/// The weights of one output add up to 2^bits exactly, so that a flat area stays what it is. There
/// are `count` for each, zeros behind the last that counts; `count` is a multiple of 4.
struct FilterTaps {
  int bits = 0;
  int count = 0;
  int origin = 0;                     // the first pixel that any output needs
  int length = 0;                     // and how many from there on
  std::vector<int> first;             // by output: the pixel of its first weight, from the origin
  std::vector<int> used;              // by output: weights that may differ from zero
  std::vector<std::int16_t> weights;  // [outputs, count]

  [[nodiscard]] const std::int16_t* of(int output) const {
    return weights.data() + static_cast<std::ptrdiff_t>(output) * count;
  }
};

[[nodiscard]] FilterTaps filter_taps(const Axis& axis, Interpolation interpolation);

/// The pixels, from `first` to `end`, that the axis's outputs depend on.
struct PixelRange {
  int first = 0;
  int end = 0;
};
[[nodiscard]] PixelRange pixels_needed(const Axis& axis, Interpolation interpolation);

}  // namespace yoke::feed
