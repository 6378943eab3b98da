#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace yoke::nn {

struct MaxPool2dOptions {
  std::int64_t kernel_size = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;
};

/// torch's max_pool2d. With gradients on a card from sm_80 and dense channels-last input it keeps a
/// byte an output for backward where torch keeps eight, and backward adds nothing atomically.
/// Shapes: [rows, channels, h, w] -> as torch's.
at::Tensor max_pool2d(const at::Tensor& x, const MaxPool2dOptions& options);

/// The mean of each channel: [rows, channels, h, w] -> [rows, channels]. On a card its gradient has
/// x's layout at once, where torch writes it in another and copies.
at::Tensor global_avg_pool(const at::Tensor& x);

}  // namespace yoke::nn
