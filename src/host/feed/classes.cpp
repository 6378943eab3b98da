#include "yoke/feed/classes.hpp"

#include <algorithm>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {

Classes::Classes(std::vector<std::string> names) : names_(std::move(names)) {
  std::ranges::sort(names_);
  const auto twice = std::ranges::adjacent_find(names_);
  if (twice != names_.end()) {
    throw Error(Code::invalid_argument,
                core::text("number the classes: \"", *twice, "\" stands twice"));
  }
}

Classes::Match Classes::match(const std::vector<std::string>& names_of_split) const {
  Match match;
  std::vector<bool> seen(names_.size(), false);
  for (const std::string& name : names_of_split) {
    const auto found = std::ranges::lower_bound(names_, name);
    if (found == names_.end() || *found != name) {
      throw Error(Code::invalid_argument,
                  core::text("number the classes: \"", name, "\" is not one of the ", names_.size(),
                             " classes of training"),
                  core::unknown_name_hint(name, names_));
    }
    const auto label = found - names_.begin();
    seen[static_cast<std::size_t>(label)] = true;
    match.labels.push_back(label);
  }
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (!seen[i]) match.missing.push_back(names_[i]);
  }
  return match;
}

}  // namespace yoke::feed
