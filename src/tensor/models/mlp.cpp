#include "yoke/models/mlp.hpp"

#include <algorithm>
#include <utility>

#include "head.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::models {

MlpImpl::MlpImpl(MlpOptions chosen)
    : CloneableClassifier("Mlp"),
      options(std::move(chosen)),
      list_(std::make_shared<torch::nn::Module>("layers")) {
  const auto& widths = options.widths;
  if (widths.size() < 2 || std::ranges::any_of(widths, [](auto width) { return width < 1; })) {
    std::vector<std::string> given;
    for (const auto width : widths) given.push_back(std::to_string(width));
    throw Error(Code::invalid_argument, "build an MLP of widths {" + core::joined(given) + "}",
                "give at least the input width and the number of classes, each 1 or more");
  }
  register_module("layers", list_);
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    layers_.push_back(
        list_->register_module(std::to_string(i), torch::nn::Linear(widths[i], widths[i + 1])));
  }
}

at::Tensor MlpImpl::forward(const at::Tensor& images) {
  at::Tensor x = images.flatten(1);
  for (std::size_t i = 0; i + 1 < layers_.size(); ++i) x = layers_[i]->forward(x).relu_();
  return layers_.back()->forward(x);
}

std::string MlpImpl::head_name() const { return core::text("layers.", layers_.size() - 1); }

void MlpImpl::replace_head(std::int64_t num_classes) {
  layers_.back() = list_->replace_module(std::to_string(layers_.size() - 1),
                                         head_like(*layers_.back(), num_classes));
  options.widths.back() = num_classes;
}

Mlp mlp(std::vector<std::int64_t> widths) { return Mlp(MlpOptions{std::move(widths)}); }

}  // namespace yoke::models
