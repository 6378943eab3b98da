#pragma once

#include <vector>

#include <torch/types.h>

namespace yoke::optim {

/// Scales all gradients by one factor so that their norm together is at most `max_norm`, as
/// torch.nn.utils.clip_grad_norm_: factor min(1, max_norm / (norm + 1e-6)).
///
///   const at::Tensor norm = clip_grad_norm_(optimizer.parameters(), 1.0);
///
/// Returns: the norm before, a scalar on the device of the first gradient; 0 where there is none.
/// Norms: norm_type p > 0 or infinity.
/// Ranks: every rank sees the same gradients after the all-reduce, so none needs to talk.
/// Streams: on the caller's; never waits for the device. A gradient that is not finite makes all
/// so. Cost: two passes over the gradients; a launch or two per device and dtype.
at::Tensor clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm,
                           double norm_type = 2.0);

}  // namespace yoke::optim
