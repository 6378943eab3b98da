#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace yoke::kernels {

/// A square window.
struct MaxPoolOptions {
  std::int64_t kernel_size = 2;  ///< up to 15
  std::int64_t stride = 2;
  std::int64_t padding = 0;  ///< at most half of kernel_size
};

struct MaxPoolForward {
  at::Tensor y;       ///< [rows, channels, out height, out width], channels-last
  at::Tensor winner;  ///< uint8 of y's shape: row in the window * kernel_size + column
};

/// Whether the kernels take `x`: on a card from sm_80, float32, float16 or bfloat16, 4-D and dense
/// in channels-last order, not empty.
[[nodiscard]] bool max_pool_runs(const at::Tensor& x, const MaxPoolOptions& options);

/// Max pooling as torch's; one byte an output is kept for backward where torch keeps eight.
/// Streams: the current one. Cost: x in, y and a byte out.
[[nodiscard]] MaxPoolForward max_pool_forward(const at::Tensor& x, const MaxPoolOptions& options);

/// The gradient of an x of that shape. Sums in a fixed order. Cost: dy and a byte in, dx out.
[[nodiscard]] at::Tensor max_pool_backward(const at::Tensor& dy, const at::Tensor& winner,
                                           at::IntArrayRef shape, const MaxPoolOptions& options);

/// The same two by plain operations on any device.
[[nodiscard]] MaxPoolForward max_pool_forward_reference(const at::Tensor& x,
                                                        const MaxPoolOptions& options);
[[nodiscard]] at::Tensor max_pool_backward_reference(const at::Tensor& dy, const at::Tensor& winner,
                                                     at::IntArrayRef shape,
                                                     const MaxPoolOptions& options);

}  // namespace yoke::kernels
