#include "yoke/nn/batch_norm.hpp"

#include <optional>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

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
  require_announced(residual);
  const std::vector<at::Tensor> y = fused(x, residual);
  return y.empty() ? composed(x, residual) : y[0];
}

std::pair<at::Tensor, at::Tensor> BatchNorm2dImpl::forward_twice(const at::Tensor& x,
                                                                 const at::Tensor& residual) {
  require_announced(residual);
  const std::vector<at::Tensor> y = fused(x, residual);
  if (!y.empty()) return {y[0], y[1]};
  const at::Tensor one = composed(x, residual);
  return {one, one};
}

void BatchNorm2dImpl::require_announced(const at::Tensor& residual) const {
  if (residual.defined() == options.residual) return;
  throw Error(Code::invalid_argument,
              core::text("BatchNorm2d made with .residual = ", options.residual ? "true" : "false",
                         " got ", residual.defined() ? "two tensors" : "one tensor"),
              options.residual ? "call forward(x, residual)" : "make it with .residual = true");
}

std::vector<at::Tensor> BatchNorm2dImpl::fused(const at::Tensor& x, const at::Tensor& residual) {
  const kernels::BatchNormState state{.weight = weight.detach(),
                                      .bias = bias.detach(),
                                      .running_mean = running_mean,
                                      .running_var = running_var,
                                      .num_batches_tracked = num_batches_tracked};
  const bool fits = !residual.defined() || residual.sizes() == x.sizes();
  if (!is_training() || group != nullptr || !fits || x.dim() != 4 ||
      x.size(1) != options.num_features || !kernels::batch_norm_runs(x, state)) {
    return {};
  }
  // torch's Function reads the device of every tensor that it is given, so none may be undefined.
  const auto added = residual.defined() ? std::optional(residual) : std::nullopt;
  return FusedNorm::apply(
      x, added, weight, bias, state,
      kernels::BatchNormOptions{.eps = options.eps,
                                .momentum = options.momentum,
                                .relu = options.activation == Activation::relu});
}

at::Tensor BatchNorm2dImpl::composed(const at::Tensor& x, const at::Tensor& residual) {
  at::Tensor y;
  if (is_training() && group != nullptr) {
    y = sync_batch_norm(x, weight, bias,
                        {.weight = {},
                         .bias = {},
                         .running_mean = running_mean,
                         .running_var = running_var,
                         .num_batches_tracked = num_batches_tracked},
                        options.momentum, options.eps, *group);
  } else {
    if (is_training()) num_batches_tracked.add_(1);
    y = at::batch_norm(x, weight, bias, running_mean, running_var, is_training(), options.momentum,
                       options.eps, at::globalContext().userEnabledCuDNN());
  }
  if (residual.defined()) y = y.add_(residual);
  return options.activation == Activation::relu ? y.relu_() : y;
}

}  // namespace yoke::nn
