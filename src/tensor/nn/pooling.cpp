#include "yoke/nn/pooling.hpp"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include "yoke/core/error.hpp"
#include "yoke/kernels/max_pool.hpp"

namespace yoke::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct SmallIndexPool : torch::autograd::Function<SmallIndexPool> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const kernels::MaxPoolOptions& options) {
    auto out = kernels::max_pool_forward(x, options);
    context->save_for_backward({out.winner});
    context->saved_data["shape"] = x.sizes().vec();
    context->saved_data["window"] =
        std::vector<std::int64_t>{options.kernel_size, options.stride, options.padding};
    return out.y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (at::GradMode::is_enabled() && gradients[0].requires_grad()) {
      throw Error(Code::unsupported, "differentiate the gradient of max_pool2d",
                  "use at::max_pool2d where gradients of gradients are wanted");
    }
    const std::vector<std::int64_t> window = context->saved_data["window"].toIntVector();
    return {kernels::max_pool_backward(
                gradients[0], context->get_saved_variables()[0],
                context->saved_data["shape"].toIntVector(),
                {.kernel_size = window[0], .stride = window[1], .padding = window[2]}),
            at::Tensor()};
  }
};

struct ChannelMean : torch::autograd::Function<ChannelMean> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    context->saved_data["shape"] = x.sizes().vec();
    context->saved_data["channels_last"] = x.is_contiguous(at::MemoryFormat::ChannelsLast);
    return x.mean({2, 3});
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const std::vector<std::int64_t> shape = context->saved_data["shape"].toIntVector();
    const auto layout = context->saved_data["channels_last"].toBool()
                            ? at::MemoryFormat::ChannelsLast
                            : at::MemoryFormat::Contiguous;
    const at::Tensor share = gradients[0] / static_cast<double>(shape[2] * shape[3]);
    return {share.view({shape[0], shape[1], 1, 1}).expand(shape).contiguous(layout)};
  }
};

}  // namespace

at::Tensor global_avg_pool(const at::Tensor& x) {
  if (x.is_cuda()) return ChannelMean::apply(x);
  return at::adaptive_avg_pool2d(x, {1, 1}).flatten(1);
}

at::Tensor max_pool2d(const at::Tensor& x, const MaxPool2dOptions& options) {
  const kernels::MaxPoolOptions window{
      .kernel_size = options.kernel_size, .stride = options.stride, .padding = options.padding};
  const bool differentiated = at::GradMode::is_enabled() && x.requires_grad();
  if (differentiated && kernels::max_pool_runs(x, window)) return SmallIndexPool::apply(x, window);
  return at::max_pool2d(x, {options.kernel_size, options.kernel_size},
                        {options.stride, options.stride}, {options.padding, options.padding});
}

}  // namespace yoke::nn
