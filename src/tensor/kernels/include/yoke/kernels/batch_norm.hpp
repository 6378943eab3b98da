#pragma once

#include <ATen/core/Tensor.h>

namespace yoke::kernels {

/// A batch norm's parameters and buffers; any may be undefined.
struct BatchNormState {
  at::Tensor weight;               ///< [channels] float32; undefined: ones
  at::Tensor bias;                 ///< [channels] float32; undefined: zeros
  at::Tensor running_mean;         ///< [channels] float32; forward moves it towards the batch's
  at::Tensor running_var;          ///< [channels] float32
  at::Tensor num_batches_tracked;  ///< scalar int64; forward counts it up
};

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;  ///< of the running statistics
  bool relu = false;      ///< max(0, .) at the end
};

struct BatchNormForward {
  at::Tensor y;       ///< as x
  at::Tensor mean;    ///< [channels] float32
  at::Tensor invstd;  ///< [channels] float32: 1 / sqrt(biased variance + eps)
  at::Tensor mask;  ///< uint8, a bit per element that passed the ReLU; with relu and residual only
};

struct BatchNormBackward {
  at::Tensor dx;         ///< as x
  at::Tensor dweight;    ///< [channels] float32
  at::Tensor dbias;      ///< [channels] float32
  at::Tensor dresidual;  ///< as x; undefined where there was none
};

/// Whether the kernels take `x`: on a card from sm_80, float32, float16 or bfloat16, 4-D and dense
/// in channels-last order, with two values a channel or more.
[[nodiscard]] bool batch_norm_runs(const at::Tensor& x, const BatchNormState& state);

/// relu(batch_norm(x) + residual) in training mode; `residual` and the ReLU as asked for.
///
/// x: batch_norm_runs(). Residual: undefined, or of x's shape and dtype in any layout.
/// Statistics and arithmetic: float32, about the first row's values, in an order that depends on
///   shapes and card alone: equal input gives equal bits. NaN and infinity pass.
/// Streams: the current one. Cost: x twice in, y out, the residual in; a second pass begins where
///   the first ended, in the L2 cache.
[[nodiscard]] BatchNormForward batch_norm_forward(const at::Tensor& x, const at::Tensor& residual,
                                                  const BatchNormState& state,
                                                  const BatchNormOptions& options);

/// The gradients of batch_norm_forward(), whose y got the gradient dy + dy2; an undefined dy2 is
/// none. `had_residual`: whether forward was given one.
/// Cost: x and dy twice in, dx out; with a residual and the ReLU dresidual out and, for dy2, one
/// pass in, where a sum beforehand would take three.
[[nodiscard]] BatchNormBackward batch_norm_backward(const at::Tensor& dy, const at::Tensor& dy2,
                                                    const at::Tensor& x,
                                                    const BatchNormForward& forward,
                                                    const BatchNormState& state,
                                                    const BatchNormOptions& options,
                                                    bool had_residual);

/// The same two by plain operations in float64 on any device: what the kernels are compared with.
/// The mask holds a byte, 0 or 1, per element.
[[nodiscard]] BatchNormForward batch_norm_forward_reference(const at::Tensor& x,
                                                            const at::Tensor& residual,
                                                            const BatchNormState& state,
                                                            const BatchNormOptions& options);
[[nodiscard]] BatchNormBackward batch_norm_backward_reference(
    const at::Tensor& dy, const at::Tensor& dy2, const at::Tensor& x,
    const BatchNormForward& forward, const BatchNormState& state, const BatchNormOptions& options,
    bool had_residual);

}  // namespace yoke::kernels
