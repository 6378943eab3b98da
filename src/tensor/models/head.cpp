#include "head.hpp"

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::models {

torch::nn::Linear head_like(const torch::nn::LinearImpl& old, std::int64_t num_classes) {
  require_positive("a head", num_classes, 1);
  torch::nn::Linear head(
      torch::nn::LinearOptions(old.options.in_features(), num_classes).bias(old.options.bias()));
  head->to(old.weight.device(), old.weight.scalar_type());
  return head;
}

void require_positive(const char* what, std::int64_t num_classes, std::int64_t in_channels) {
  if (num_classes >= 1 && in_channels >= 1) return;
  throw Error(
      Code::invalid_argument,
      core::text("build ", what, " for ", num_classes, " classes and ", in_channels, " channels"),
      "give numbers of 1 or more");
}

}  // namespace yoke::models
