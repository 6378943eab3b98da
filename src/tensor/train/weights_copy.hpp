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

  // The values taken last: parameters, then buffers.
  [[nodiscard]] std::vector<at::Tensor> values() const;
  // Copies them from elsewhere. Requires: as many, of the same shapes.
  void set_values(const std::vector<at::Tensor>& values);

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs_;  // the module's, ours
};

}  // namespace yoke::train
