#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/models/image_classifier.hpp"

namespace yoke::models {

/// What the data say about the model.
struct InputOptions {
  std::int64_t num_classes = 10;
  std::int64_t in_channels = 1;
  std::int64_t image_size = 28;  ///< pixels a side; only the MLP's first layer depends on it
};

/// The names that make() knows, as `--model` takes them: mlp, small-cnn, resnet18, ...
[[nodiscard]] std::vector<std::string> names();

/// A freshly initialised model on the CPU.
/// Errors: not_found for an unknown name, with the nearest one; invalid_argument for a number
/// below 1.
[[nodiscard]] std::shared_ptr<ImageClassifier> make(std::string_view name,
                                                    const InputOptions& input);

}  // namespace yoke::models
