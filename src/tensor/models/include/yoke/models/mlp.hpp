#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "yoke/models/image_classifier.hpp"

namespace yoke::models {

struct MlpOptions {
  std::vector<std::int64_t> widths{784, 2048, 2048, 10};  ///< input, hidden layers, classes
};

/// Linear layers with ReLU between them, over the flattened image. Parameters `layers.0.weight`,
/// `layers.0.bias`, `layers.1.weight`, ...: in Python a ModuleList `layers` of torch.nn.Linear.
///
/// Shapes: [rows, ...] with widths[0] values per row -> [rows, widths.back()].
/// Errors: invalid_argument for fewer than two widths or one below 1.
class MlpImpl : public CloneableClassifier<MlpImpl> {
 public:
  explicit MlpImpl(MlpOptions options = {});

  at::Tensor forward(const at::Tensor& images) override;
  [[nodiscard]] std::int64_t num_classes() const override { return options.widths.back(); }
  [[nodiscard]] std::string head_name() const override;
  void replace_head(std::int64_t num_classes) override;

  MlpOptions options;

 private:
  std::shared_ptr<torch::nn::Module> list_;  // owns the layers under the name `layers`
  std::vector<torch::nn::Linear> layers_;
};
TORCH_MODULE(Mlp);

/// An MLP of these widths: mlp({784, 2048, 2048, 10}).
[[nodiscard]] Mlp mlp(std::vector<std::int64_t> widths = MlpOptions{}.widths);

}  // namespace yoke::models
