#include "yoke/models/small_cnn.hpp"

#include "head.hpp"

namespace yoke::models {
namespace {

constexpr std::int64_t kSide = 7;  // 28 halved by two poolings

torch::nn::Conv2d same_size_conv(std::int64_t in, std::int64_t out, std::int64_t kernel) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, kernel).padding(kernel / 2));
}

const SmallCnnOptions& checked(const SmallCnnOptions& options) {
  require_positive("a small CNN", options.num_classes, options.in_channels);
  return options;
}

}  // namespace

SmallCnnImpl::SmallCnnImpl(const SmallCnnOptions& chosen)
    : CloneableClassifier("SmallCnn"),
      options(checked(chosen)),
      conv1(register_module("conv1", same_size_conv(options.in_channels, 16, 5))),
      conv2(register_module("conv2", same_size_conv(16, 32, 3))),
      fc1(register_module("fc1", torch::nn::Linear(32 * kSide * kSide, 128))),
      fc2(register_module("fc2", torch::nn::Linear(128, options.num_classes))) {}

at::Tensor SmallCnnImpl::forward(const at::Tensor& images) {
  at::Tensor x = at::max_pool2d(conv1->forward(images).relu_(), 2);
  x = at::max_pool2d(conv2->forward(x).relu_(), 2);
  if (x.size(2) != kSide || x.size(3) != kSide) x = at::adaptive_avg_pool2d(x, {kSide, kSide});
  x = fc1->forward(x.flatten(1)).relu_();
  return fc2->forward(x);
}

void SmallCnnImpl::replace_head(std::int64_t num_classes) {
  fc2 = replace_module("fc2", head_like(*fc2, num_classes));
  options.num_classes = num_classes;
}

SmallCnn small_cnn(const SmallCnnOptions& options) { return SmallCnn(options); }

}  // namespace yoke::models
