#include "yoke/settings/schema.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "value.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::settings {
namespace {

std::string with_dashes(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

std::vector<Scalar> scalars_of(std::monostate) { return {}; }

template <class Item>
std::vector<Scalar> scalars_of(const Item& item) {
  return {Scalar(item)};
}

template <class Item>
std::vector<Scalar> scalars_of(const std::vector<Item>& items) {
  return {items.begin(), items.end()};
}

/// Runs a default through the checks that everybody's values pass.
void require_allowed_default(const Option& option) try {
  if (std::holds_alternative<std::monostate>(option.fallback)) return;
  const auto scalars =
      std::visit([](const auto& held) { return scalars_of(held); }, option.fallback);
  const Value checked = value_from_scalars(option, scalars, /*is_array=*/false, "its type");
  if (checked == option.fallback) return;
  throw core::Error(core::Code::internal, "it is of another type than the option");
} catch (const core::Error& error) {
  throw core::Error(core::Code::internal, "default of " + option.key).caused_by(error);
}

}  // namespace

Schema::Schema(std::string usage, std::vector<Option> options)
    : usage_(std::move(usage)), options_(std::move(options)) {
  std::set<std::string> seen;
  for (const std::string& name : names()) {
    if (!seen.insert(name).second)
      throw core::Error(core::Code::internal, "option " + name + " stands twice in a schema");
  }
  for (const Option& option : options_) require_allowed_default(option);
}

const Option* Schema::find(std::string_view name) const {
  const std::string wanted = with_dashes(name);
  for (const Option& option : options_) {
    const auto& aliases = option.aliases;
    if (option.key == wanted || std::find(aliases.begin(), aliases.end(), wanted) != aliases.end())
      return &option;
  }
  return nullptr;
}

std::vector<std::string> Schema::names() const {
  std::vector<std::string> out;
  for (const Option& option : options_) {
    out.push_back(option.key);
    out.insert(out.end(), option.aliases.begin(), option.aliases.end());
  }
  return out;
}

}  // namespace yoke::settings
