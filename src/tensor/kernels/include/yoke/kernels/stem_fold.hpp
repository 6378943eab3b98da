#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace yoke::kernels {

struct StemFoldOptions {
  at::ScalarType dtype = at::kBFloat16;  ///< of the result: float16 or bfloat16
  std::int64_t padding = 3;              ///< rows and columns of zeros before the image
  std::int64_t out_height = 0;
  std::int64_t out_width = 0;
};

/// Whether the kernel takes `x`: on a card from sm_80, up to 4 channels, float32 or the dtype asked
/// for, in any layout.
[[nodiscard]] bool stem_fold_runs(const at::Tensor& x, at::ScalarType dtype);

/// Squares of 2x2 pixels as channels: [rows, channels, h, w] -> [rows, 16, out_height, out_width],
/// channels-last, where channel (2 i + j) * channels + c at (q, r) is pixel (2 q + i - padding,
/// 2 r + j - padding) of channel c, and 0 outside the image and in channels that are left over.
/// Cost: x in, 16 channels out; takes the place of a cast.
[[nodiscard]] at::Tensor stem_fold(const at::Tensor& x, const StemFoldOptions& options);

/// The same by plain operations on any device.
[[nodiscard]] at::Tensor stem_fold_reference(const at::Tensor& x, const StemFoldOptions& options);

}  // namespace yoke::kernels
