#include "weights_copy.hpp"

namespace yoke::train {

WeightsCopy::WeightsCopy(torch::nn::Module& module) {
  for (const at::Tensor& tensor : module.parameters())
    pairs_.emplace_back(tensor, tensor.detach().clone());
  for (const at::Tensor& tensor : module.buffers())
    pairs_.emplace_back(tensor, tensor.detach().clone());
}

void WeightsCopy::take() {
  const at::NoGradGuard no_grad;
  for (auto& [theirs, ours] : pairs_) ours.copy_(theirs);
}

void WeightsCopy::restore() {
  const at::NoGradGuard no_grad;
  for (auto& [theirs, ours] : pairs_) theirs.copy_(ours);
}

std::vector<at::Tensor> WeightsCopy::values() const {
  std::vector<at::Tensor> values;
  for (const auto& [theirs, ours] : pairs_) values.push_back(ours);
  return values;
}

void WeightsCopy::set_values(const std::vector<at::Tensor>& values) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < pairs_.size(); ++i) pairs_[i].second.copy_(values.at(i));
}

}  // namespace yoke::train
