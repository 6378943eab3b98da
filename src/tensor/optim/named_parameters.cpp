#include "yoke/optim/named_parameters.hpp"

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::optim {

NamedParameters::NamedParameters(const std::vector<at::Tensor>& values) {
  for (const at::Tensor& value : values) add({}, value);
}

NamedParameters::NamedParameters(const torch::OrderedDict<std::string, at::Tensor>& named) {
  for (const auto& item : named) add(item.key(), item.value());
}

NamedParameters::NamedParameters(const std::vector<std::pair<std::string, at::Tensor>>& named) {
  for (const auto& [name, value] : named) add(name, value);
}

void NamedParameters::add(std::string name, const at::Tensor& value) {
  if (!value.defined() || !value.is_leaf()) {
    throw Error(Code::invalid_argument,
                core::text("make an optimizer: parameter ", list_.size(), " \"", name, "\" is ",
                           value.defined() ? "computed from others, not a leaf" : "undefined"),
                "pass what module->parameters() or module->named_parameters() returns");
  }
  list_.push_back({std::move(name), value});
}

}  // namespace yoke::optim
