#pragma once

#include <string>
#include <utility>
#include <vector>

#include <torch/ordered_dict.h>
#include <torch/types.h>

namespace yoke::optim {

struct NamedParameter {
  std::string name;  ///< empty where none was given
  at::Tensor value;
};

/// The parameters of one group, made from whatever a module or a wrapper hands out:
///
///   SGD(model->named_parameters(), {.lr = 0.1});  // with names: saved state is matched by name
///   SGD(model->parameters(), {.lr = 0.1});        // without: saved state is matched by position
///
/// Errors: invalid_argument for an undefined tensor or one that is not a leaf.
class NamedParameters {
 public:
  NamedParameters(const std::vector<at::Tensor>& values);
  NamedParameters(const torch::OrderedDict<std::string, at::Tensor>& named);
  NamedParameters(const std::vector<std::pair<std::string, at::Tensor>>& named);

  [[nodiscard]] const std::vector<NamedParameter>& list() const noexcept { return list_; }

 private:
  void add(std::string name, const at::Tensor& value);

  std::vector<NamedParameter> list_;
};

}  // namespace yoke::optim
