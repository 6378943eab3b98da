#include "yoke/train/best.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::train {

bool Best::update(const NamedValues& values) {
  const auto found = std::find_if(values.begin(), values.end(), [&](const auto& value) {
    return value.first == monitor_.metric;
  });
  if (found == values.end()) {
    std::vector<std::string> names;
    for (const auto& [name, value] : values) names.push_back(name);
    throw Error(
        Code::invalid_argument,
        core::text("watch ", monitor_.metric, ": the evaluation gives no value of that name"),
        core::unknown_name_hint(monitor_.metric, names));
  }
  const double gain = monitor_.higher_is_better ? found->second - best_.value_or(0)
                                                : best_.value_or(0) - found->second;
  const bool better = !std::isnan(found->second) && (!best_ || gain > monitor_.min_delta);
  since_ = better ? 0 : since_ + 1;
  if (better) best_ = found->second;
  return better;
}

}  // namespace yoke::train
