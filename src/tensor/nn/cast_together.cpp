#include "yoke/nn/cast_together.hpp"

#include <ranges>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

namespace yoke::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Cast {
  const at::TensorImpl* weight;
  at::Tensor low;
};

std::vector<Cast>& casts() {
  thread_local std::vector<Cast> list;
  return list;
}

// Copies of another type that lie in memory as the originals do, by one launch.
variable_list cast_all(const variable_list& from, at::ScalarType dtype) {
  const at::NoGradGuard no_grad;
  variable_list to;
  to.reserve(from.size());
  for (const at::Tensor& one : from) to.push_back(at::empty_like(one, one.options().dtype(dtype)));
  at::_foreach_copy_(to, from);
  return to;
}

struct CastAll : torch::autograd::Function<CastAll> {
  static variable_list forward(AutogradContext* context, at::TensorList weights,
                               at::ScalarType dtype) {
    context->set_materialize_grads(false);
    return cast_all({weights.begin(), weights.end()}, dtype);
  }

  static variable_list backward(AutogradContext*, variable_list gradients) {
    variable_list there;
    for (const at::Tensor& gradient : gradients) {
      if (gradient.defined()) there.push_back(gradient);
    }
    if (there.empty()) return variable_list(gradients.size() + 1);
    const bool again = at::GradMode::is_enabled();
    const variable_list wide = again ? variable_list() : cast_all(there, at::kFloat);
    std::size_t next = 0;
    for (at::Tensor& gradient : gradients) {
      if (!gradient.defined()) continue;
      gradient = again ? gradient.to(at::kFloat) : wide[next++];
    }
    gradients.emplace_back();  // of the format
    return gradients;
  }
};

bool is_low(at::ScalarType dtype) { return dtype == at::kBFloat16 || dtype == at::kHalf; }

}  // namespace

CastTogether::CastTogether(const std::vector<at::Tensor>& weights) : before_(casts().size()) {
  if (!at::autocast::is_autocast_enabled(at::kCUDA)) return;
  const at::ScalarType dtype = at::autocast::get_autocast_dtype(at::kCUDA);
  if (!is_low(dtype)) return;
  variable_list trained;
  variable_list frozen;  // apart: one of them among the trained would get a gradient computed
  for (const at::Tensor& weight : weights) {
    if (!weight.defined() || !weight.is_cuda() || weight.scalar_type() != at::kFloat) continue;
    const variable_list& others = trained.empty() ? frozen : trained;
    if (!others.empty() && weight.device() != others[0].device()) continue;
    (weight.requires_grad() && at::GradMode::is_enabled() ? trained : frozen).push_back(weight);
  }
  const auto keep = [](const variable_list& from, const variable_list& low) {
    for (std::size_t i = 0; i < from.size(); ++i)
      casts().push_back({from[i].unsafeGetTensorImpl(), low[i]});
  };
  variable_list low_trained;
  if (!trained.empty()) low_trained = CastAll::apply(at::TensorList(trained), dtype);
  const variable_list low_frozen = frozen.empty() ? frozen : cast_all(frozen, dtype);
  keep(trained, low_trained);
  keep(frozen, low_frozen);
}

CastTogether::~CastTogether() { casts().resize(before_); }

at::Tensor cast_of(const at::Tensor& weight) {
  for (const Cast& cast : casts() | std::views::reverse) {
    if (cast.weight == weight.unsafeGetTensorImpl()) return cast.low;
  }
  return weight;
}

at::Tensor convolve(torch::nn::Conv2dImpl& layer, const at::Tensor& x) {
  const at::Tensor weight = cast_of(layer.weight);
  const auto* padding = std::get_if<torch::ExpandingArray<2>>(&layer.options.padding());
  const bool zeros = std::holds_alternative<torch::enumtype::kZeros>(layer.options.padding_mode());
  if (weight.is_same(layer.weight) || padding == nullptr || !zeros) return layer.forward(x);
  const auto bias = layer.bias.defined() ? std::optional(cast_of(layer.bias)) : std::nullopt;
  return at::conv2d(x, weight, bias, layer.options.stride(), *padding, layer.options.dilation(),
                    layer.options.groups());
}

at::Tensor multiply(torch::nn::LinearImpl& layer, const at::Tensor& x) {
  const at::Tensor weight = cast_of(layer.weight);
  if (weight.is_same(layer.weight)) return layer.forward(x);
  const auto bias = layer.bias.defined() ? std::optional(cast_of(layer.bias)) : std::nullopt;
  return at::linear(x, weight, bias);
}

}  // namespace yoke::nn
