#pragma once

#include <ATen/core/Tensor.h>

namespace yoke::parallel {

/// sum / count as a loss whose weight in the step's mean over ranks and micro-batches is `count`
/// (tokens, pixels, boxes) in place of the rows of the first input.
///
///   auto losses = at::cross_entropy_loss(logits, targets, {}, at::Reduction::Sum,
///   /*ignore_index=*/-100); yoke::mean(losses, (targets != -100).sum().item<double>()).backward();
///
/// Shapes: `sum` is a scalar. A count of 0 gives the value 0 and adds nothing, whatever `sum` is.
/// Errors: invalid_argument for a negative or non-finite count; two means with different counts in
/// one backward are
///   refused there.
[[nodiscard]] at::Tensor mean(const at::Tensor& sum, double count);

}  // namespace yoke::parallel

namespace yoke {
using parallel::mean;
}  // namespace yoke
