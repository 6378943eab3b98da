#pragma once

// What max_pool.cuh is launched with; included on both sides, so plain types only.

namespace yoke::kernels {

/// in [batch, height, width, channels] -> out [batch, out_height, out_width, channels], channels
/// contiguous; a square window of `kernel`, at most 15.
struct MaxPoolArgs {
  int batch, height, width, channels;
  int out_height, out_width;
  int kernel, stride, padding;
  const void* in;         ///< x, or dy
  void* out;              ///< y, or dx
  unsigned char* winner;  ///< [batch, out_height, out_width, channels]: place in the window
};

}  // namespace yoke::kernels
