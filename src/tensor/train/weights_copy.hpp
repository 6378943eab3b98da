#pragma once

#include <utility>
#include <vector>

#include <torch/nn/module.h>

namespace yoke::train {

// A copy of a module's parameters and buffers at one moment, on their devices.
class WeightsCopy {
 public:
  explicit WeightsCopy(torch::nn::Module& module);

  // Takes the values of this moment.
  void take();
  // Puts the values taken last into the module.
  void restore();

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs_;  // the module's, ours
};

}  // namespace yoke::train
