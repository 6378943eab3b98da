#pragma once

#include <cstdint>
#include <string>

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "yoke/models/image_classifier.hpp"

namespace yoke::models {

struct SmallCnnOptions {
  std::int64_t num_classes = 10;
  std::int64_t in_channels = 1;
};

/// Two convolutions and two linear layers: the model of the quick start (docs/models.md defines
/// it). Parameters conv1, conv2, fc1, fc2.
///
/// Shapes: [rows, in_channels, h, w] with h, w >= 4 -> [rows, num_classes]. Made for 28 x 28; other
///   sizes are pooled to the same 7 x 7 before the linear layers.
class SmallCnnImpl : public CloneableClassifier<SmallCnnImpl> {
 public:
  explicit SmallCnnImpl(const SmallCnnOptions& options = {});

  at::Tensor forward(const at::Tensor& images) override;
  [[nodiscard]] std::int64_t num_classes() const override { return options.num_classes; }
  [[nodiscard]] std::string head_name() const override { return "fc2"; }
  void replace_head(std::int64_t num_classes) override;

  SmallCnnOptions options;
  torch::nn::Conv2d conv1, conv2;
  torch::nn::Linear fc1, fc2;
};
TORCH_MODULE(SmallCnn);

[[nodiscard]] SmallCnn small_cnn(const SmallCnnOptions& options = {});

}  // namespace yoke::models
