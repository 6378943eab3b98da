#pragma once

#include <utility>

#include <ATen/core/Tensor.h>

namespace yoke::nn {

// What a batch norm in training mode works with; undefined: it has none.
struct NormTensors {
  at::Tensor weight{};
  at::Tensor bias{};
  at::Tensor running_mean{};
  at::Tensor running_var{};
  at::Tensor num_batches_tracked{};
};

struct NormOptions {
  double momentum = 0.1;
  double eps = 1e-5;
  bool relu = false;
};

// relu(batch_norm(x) + residual) in training mode, by the kernels where they take it, else by
// torch's operations; as two tensors of the same values for two consumers (BatchNorm2dImpl).
[[nodiscard]] std::pair<at::Tensor, at::Tensor> norm_twice(const at::Tensor& x,
                                                           const at::Tensor& residual,
                                                           const NormTensors& tensors,
                                                           const NormOptions& options);

}  // namespace yoke::nn
