#pragma once

#include <cstddef>
#include <span>

namespace yoke::feed {

/// What turns a byte into a float: byte / 255, less the mean, in units of the standard deviation.
struct Normalise {
  float mean = 0;
  float std = 1;
};

/// Fills `out` from bytes. Requires: out.size() == pixels.size().
/// Errors: invalid_argument for a standard deviation that is not above 0.
/// Cost: one multiplication and addition a byte, several at a time.
void to_floats(std::span<const std::byte> pixels, const Normalise& normalise, std::span<float> out);

}  // namespace yoke::feed
