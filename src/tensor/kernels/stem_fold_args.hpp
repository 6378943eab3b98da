#pragma once

// What stem_fold.cuh is launched with; included on both sides, so plain types only.

namespace yoke::kernels {

struct StemFoldArgs {
  const void* in;   ///< [batch, channels, height, width] in any strides
  void* out;        ///< [batch, out_height, out_width, 16]
  int in_is_float;  ///< 1: float32; 0: out's type
  int batch, channels, height, width;
  int out_height, out_width;
  int padding;
  long long stride_batch, stride_channel, stride_height, stride_width;
};

}  // namespace yoke::kernels
