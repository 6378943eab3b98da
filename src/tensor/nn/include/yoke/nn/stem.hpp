#pragma once

#include <ATen/core/Tensor.h>

namespace yoke::nn {

/// conv2d(x, weight, stride 2, padding 3) for the 7x7 kernels with which networks for images begin.
///
/// Where a card from sm_80 computes it in float16 or bfloat16 (by autocast or by x's own dtype),
/// and x needs no gradient, squares of 2x2 pixels become channels: the convolution is then one of
/// 4x4 over 16 channels, which tensor cores take. Everything else runs torch's conv2d. x: [rows,
/// channels, h, w], up to 4 channels for the fast way. weight: [out, channels, 7, 7].
at::Tensor stem_convolution(const at::Tensor& x, const at::Tensor& weight);

}  // namespace yoke::nn
