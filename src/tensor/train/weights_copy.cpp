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

}  // namespace yoke::train
