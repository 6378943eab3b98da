#include "yoke/nn/batch_norm.hpp"

#include <optional>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include "norm.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/kernels/batch_norm.hpp"
#include "yoke/nn/sync_batch_norm.hpp"

namespace yoke::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// relu(batch_norm(x) + residual) by the kernels, twice (BatchNorm2dImpl::forward_twice). Saves x
/// and, where there is a residual, a bit an element; y is the next convolution's to save.
struct FusedNorm : torch::autograd::Function<FusedNorm> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x,
                               const std::optional<at::Tensor>& added, const at::Tensor& weight,
                               const at::Tensor& bias, const kernels::BatchNormState& state,
                               const kernels::BatchNormOptions& options) {
    const at::Tensor residual = added.value_or(at::Tensor());
    auto out = kernels::batch_norm_forward(x, residual, state, options);
    context->save_for_backward({x, weight, bias, out.mean, out.invstd, out.mask});
    context->saved_data["eps"] = options.eps;
    context->saved_data["relu"] = options.relu;
    context->saved_data["residual"] = residual.defined();
    context->set_materialize_grads(false);
    return {out.y, out.y.detach()};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    if (!gradients[0].defined()) std::swap(gradients[0], gradients[1]);
    if (!gradients[0].defined()) return variable_list(6);
    const bool again =
        gradients[0].requires_grad() || (gradients[1].defined() && gradients[1].requires_grad());
    if (at::GradMode::is_enabled() && again) {
      throw Error(Code::unsupported, "differentiate the gradient of a fused BatchNorm2d",
                  "use torch::nn::BatchNorm2d where gradients of gradients are wanted");
    }
    const variable_list saved = context->get_saved_variables();
    const kernels::BatchNormState state{.weight = saved[1].detach(),
                                        .bias = saved[2].detach(),
                                        .running_mean = {},
                                        .running_var = {},
                                        .num_batches_tracked = {}};
    const kernels::BatchNormForward forward{
        .y = {}, .mean = saved[3], .invstd = saved[4], .mask = saved[5]};
    const kernels::BatchNormOptions options{.eps = context->saved_data["eps"].toDouble(),
                                            .relu = context->saved_data["relu"].toBool()};
    auto out =
        kernels::batch_norm_backward(gradients[0], gradients[1], saved[0].detach(), forward, state,
                                     options, context->saved_data["residual"].toBool());
    return {out.dx, out.dresidual, out.dweight, out.dbias, at::Tensor(), at::Tensor()};
  }
};

kernels::BatchNormState state_of(const NormTensors& tensors) {
  const auto bare = [](const at::Tensor& one) { return one.defined() ? one.detach() : one; };
  return {.weight = bare(tensors.weight),
          .bias = bare(tensors.bias),
          .running_mean = tensors.running_mean,
          .running_var = tensors.running_var,
          .num_batches_tracked = tensors.num_batches_tracked};
}

// What comes after torch's norm; `y` is nobody else's.
at::Tensor finished(at::Tensor y, const at::Tensor& residual, const NormOptions& options) {
  if (residual.defined()) y = y.add_(residual);
  return options.relu ? y.relu_() : y;
}

}  // namespace

BatchNorm2dImpl::BatchNorm2dImpl(const BatchNorm2dOptions& chosen) : options(chosen) {
  if (options.num_features < 1) {
    throw Error(Code::invalid_argument,
                core::text("build BatchNorm2d with num_features ", options.num_features),
                "give 1 or more");
  }
  reset();
}

void BatchNorm2dImpl::reset() {
  weight = register_parameter("weight", torch::ones({options.num_features}));
  bias = register_parameter("bias", torch::zeros({options.num_features}));
  running_mean = register_buffer("running_mean", torch::zeros({options.num_features}));
  running_var = register_buffer("running_var", torch::ones({options.num_features}));
  num_batches_tracked =
      register_buffer("num_batches_tracked", torch::tensor(0, torch::dtype(torch::kLong)));
}

at::Tensor BatchNorm2dImpl::forward(const at::Tensor& x, const at::Tensor& residual) {
  return forward_twice(x, residual).first;
}

std::pair<at::Tensor, at::Tensor> BatchNorm2dImpl::forward_twice(const at::Tensor& x,
                                                                 const at::Tensor& residual) {
  require_announced(residual);
  const NormTensors tensors{.weight = weight,
                            .bias = bias,
                            .running_mean = running_mean,
                            .running_var = running_var,
                            .num_batches_tracked = num_batches_tracked};
  const NormOptions how{.momentum = options.momentum,
                        .eps = options.eps,
                        .relu = options.activation == Activation::relu};
  if (is_training() && group == nullptr) return norm_twice(x, residual, tensors, how);
  at::Tensor y;
  if (is_training()) {
    y = sync_batch_norm(x, weight, bias, state_of(tensors), how.momentum, how.eps, *group);
  } else {
    y = at::batch_norm(x, weight, bias, running_mean, running_var, /*training=*/false,
                       options.momentum, options.eps, at::globalContext().userEnabledCuDNN());
  }
  const at::Tensor z = finished(y, residual, how);
  return {z, z};
}

void BatchNorm2dImpl::require_announced(const at::Tensor& residual) const {
  if (residual.defined() == options.residual) return;
  throw Error(Code::invalid_argument,
              core::text("BatchNorm2d made with .residual = ", options.residual ? "true" : "false",
                         " got ", residual.defined() ? "two tensors" : "one tensor"),
              options.residual ? "call forward(x, residual)" : "make it with .residual = true");
}

std::pair<at::Tensor, at::Tensor> norm_twice(const at::Tensor& x, const at::Tensor& residual,
                                             const NormTensors& tensors,
                                             const NormOptions& options) {
  kernels::BatchNormState state = state_of(tensors);
  const bool fits = !residual.defined() || residual.sizes() == x.sizes();
  if (fits && x.dim() == 4 && tensors.weight.defined() && x.size(1) == tensors.weight.size(0) &&
      kernels::batch_norm_runs(x, state)) {
    // torch's Function reads the device of every tensor that it is given, so none may be undefined.
    const auto added = residual.defined() ? std::optional(residual) : std::nullopt;
    const variable_list y = FusedNorm::apply(
        x, added, tensors.weight, tensors.bias, state,
        kernels::BatchNormOptions{
            .eps = options.eps, .momentum = options.momentum, .relu = options.relu});
    return {y[0], y[1]};
  }
  if (tensors.num_batches_tracked.defined()) tensors.num_batches_tracked.add_(1);
  const at::Tensor y = at::batch_norm(
      x, tensors.weight, tensors.bias, tensors.running_mean, tensors.running_var,
      /*training=*/true, options.momentum, options.eps, at::globalContext().userEnabledCuDNN());
  const at::Tensor z = finished(y, residual, options);
  return {z, z};
}

}  // namespace yoke::nn
