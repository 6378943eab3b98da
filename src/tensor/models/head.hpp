#pragma once

#include <cstdint>

#include <torch/nn/modules/linear.h>

namespace yoke::models {

/// A fresh linear layer with the inputs, bias, device and dtype of `old` and `num_classes` outputs.
/// Errors: invalid_argument for num_classes below 1.
[[nodiscard]] torch::nn::Linear head_like(const torch::nn::LinearImpl& old,
                                          std::int64_t num_classes);

/// Errors: invalid_argument, naming `what`, where one of the numbers is below 1.
void require_positive(const char* what, std::int64_t num_classes, std::int64_t in_channels);

}  // namespace yoke::models
