#include "yoke/data/batch.hpp"

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::data {

const at::Tensor& Batch::operator[](std::string_view name) const {
  std::vector<std::string> names;
  for (const auto& [known, tensor] : fields) {
    if (known == name) return tensor;
    names.push_back(known);
  }
  throw Error(
      Code::invalid_argument, core::text("this batch has no field ", name),
      names.empty() ? "its tensors are input and target" : core::unknown_name_hint(name, names));
}

}  // namespace yoke::data
