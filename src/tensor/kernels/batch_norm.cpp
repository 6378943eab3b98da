#include "yoke/kernels/batch_norm.hpp"

#include <ATen/Functions.h>

namespace yoke::kernels {
namespace {

at::Tensor per_channel(const at::Tensor& values) {
  return values.to(at::kDouble).view({1, -1, 1, 1});
}

at::Tensor scale_of(const BatchNormState& state, const at::Tensor& invstd) {
  const at::Tensor inverse = per_channel(invstd);
  return state.weight.defined() ? inverse * per_channel(state.weight) : inverse;
}

void move_towards(const at::Tensor& running, const at::Tensor& value, double momentum) {
  if (running.defined()) running.lerp_(value.to(running.scalar_type()), momentum);
}

}  // namespace

BatchNormForward batch_norm_forward_reference(const at::Tensor& x, const at::Tensor& residual,
                                              const BatchNormState& state,
                                              const BatchNormOptions& options) {
  const at::NoGradGuard no_grad;
  const at::Tensor wide = x.to(at::kDouble);
  const auto rows = static_cast<double>(x.numel() / x.size(1));
  const at::Tensor mean = wide.mean({0, 2, 3});
  const at::Tensor variance = (wide - per_channel(mean)).square().mean({0, 2, 3});
  const at::Tensor invstd = (variance + options.eps).rsqrt();
  move_towards(state.running_mean, mean, options.momentum);
  move_towards(state.running_var, variance * (rows / (rows - 1)), options.momentum);
  if (state.num_batches_tracked.defined()) state.num_batches_tracked.add_(1);

  at::Tensor y = (wide - per_channel(mean)) * scale_of(state, invstd);
  if (state.bias.defined()) y = y + per_channel(state.bias);
  if (residual.defined()) y = y + residual.to(at::kDouble);
  at::Tensor mask;
  if (options.relu) {
    mask = at::logical_not(y <= 0);  // a NaN passes
    y = at::where(mask, y, 0.0);
  }
  return {.y = y.to(x.scalar_type()),
          .mean = mean.to(at::kFloat),
          .invstd = invstd.to(at::kFloat),
          .mask = mask.defined() ? mask.to(at::kByte) : mask};
}

BatchNormBackward batch_norm_backward_reference(const at::Tensor& dy, const at::Tensor& dy2,
                                                const at::Tensor& x,
                                                const BatchNormForward& forward,
                                                const BatchNormState& state,
                                                const BatchNormOptions& options,
                                                bool had_residual) {
  const at::NoGradGuard no_grad;
  at::Tensor gradient = (dy2.defined() ? dy + dy2 : dy).to(at::kDouble);
  if (options.relu) gradient = at::where(forward.mask.to(at::kBool), gradient, 0.0);
  const at::Tensor centred = x.to(at::kDouble) - per_channel(forward.mean);
  const at::Tensor invstd = forward.invstd.to(at::kDouble);
  const at::Tensor products = (gradient * centred).sum({0, 2, 3});
  const auto rows = static_cast<double>(x.numel() / x.size(1));
  const at::Tensor dx =
      scale_of(state, forward.invstd) * (gradient - gradient.mean({0, 2, 3}, /*keepdim=*/true) -
                                         centred * per_channel(products * invstd.square() / rows));
  return {.dx = dx.to(x.scalar_type()),
          .dweight = (products * invstd).to(at::kFloat),
          .dbias = gradient.sum({0, 2, 3}).to(at::kFloat),
          .dresidual = had_residual ? gradient.to(x.scalar_type()) : at::Tensor()};
}

}  // namespace yoke::kernels
