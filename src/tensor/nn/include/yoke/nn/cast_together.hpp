#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

namespace yoke::nn {

/// Under autocast on a card each weight is cast by a launch of its own, and its gradient back by
/// another: 112 of the 585 launches of a ResNet-50 step. While this object lives, convolve() and
/// multiply() in this thread take copies of `weights` that one launch has cast; backward casts
/// their gradients back together, once the last of them is there.
///
///   const nn::CastTogether casts({conv1->weight, conv2->weight});
///   x = nn::convolve(*conv2, at::relu(nn::convolve(*conv1, x)));
///
/// Give the weights of a part of the network, not all: averaging over ranks begins when a part is
/// done. No effect without autocast to a 16-bit format on the weights' card, and for weights that
/// are not float32 there. Objects nest; the innermost that knows a weight counts.
/// Values: those of autocast, bit for bit. Threads: for the one that made it; ends there, in the
/// reverse order.
class CastTogether {
 public:
  explicit CastTogether(const std::vector<at::Tensor>& weights);
  ~CastTogether();
  CastTogether(const CastTogether&) = delete;
  CastTogether& operator=(const CastTogether&) = delete;

 private:
  std::size_t before_ = 0;  // casts of this thread that others made
};

/// The cast copy of `weight` where an enclosing CastTogether has one; else `weight`.
[[nodiscard]] at::Tensor cast_of(const at::Tensor& weight);

/// layer(x) with its weight and bias by cast_of(); zero padding only.
[[nodiscard]] at::Tensor convolve(torch::nn::Conv2dImpl& layer, const at::Tensor& x);
[[nodiscard]] at::Tensor multiply(torch::nn::LinearImpl& layer, const at::Tensor& x);

}  // namespace yoke::nn
