#pragma once

#include <cstddef>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "yoke/kernels/batch_norm.hpp"

namespace yoke::comm {
class Group;
}

namespace yoke::nn {

/// Lets every nn::BatchNorm2d in `module` take its statistics over all ranks of `group`, in
/// training mode: what one process computes on the joined batch, in which a rank's rows count as
/// many as they are, none included. Returns how many norms that are.
///
///   nn::synchronise_norms(*model, world.group());
///
/// Forward is collective then, once a norm, and so is backward: a rank without rows calls both,
/// with a batch of 0 rows (Trainer does). Gradients are those for averaging over ranks by rows, as
/// parallel::DistributedDataParallel averages them. Borrows the group.
/// Errors: unsupported where the module holds a torch::nn::BatchNorm2d, whose type a C++ member
/// fixes.
std::size_t synchronise_norms(torch::nn::Module& module, comm::Group& group);

/// Whether synchronise_norms() found something there.
[[nodiscard]] bool has_synchronised_norms(const torch::nn::Module& module);

/// The norm itself: x [rows, channels, h, w], rows may be 0; statistics over the ranks of `group`.
/// Values in float32 (float64 for float64), the result in x's type. Changes the running statistics
/// of `state`. Collective; backward too. Cost: one all-gather of 2 * channels + 2 numbers forward,
/// one all-reduce of 2 * channels backward.
[[nodiscard]] at::Tensor sync_batch_norm(const at::Tensor& x, const at::Tensor& weight,
                                         const at::Tensor& bias,
                                         const kernels::BatchNormState& state, double momentum,
                                         double eps, comm::Group& group);

}  // namespace yoke::nn
