#include "yoke/settings/report.hpp"

#include "value.hpp"
#include "yoke/core/text.hpp"

namespace yoke::settings {
namespace {

/// "batch-size = 64", or the reason why there is no such line, as a comment.
std::string line_of(const Option& option, const Setting& setting) {
  const bool unset = std::holds_alternative<std::monostate>(setting.value);
  if (unset) {
    return "# " + option.key + " is not set" +
           (option.if_unset.empty() ? "" : ": " + option.if_unset);
  }
  return (option.per_call ? "# " : "") + option.key + " = " + toml_text(setting.value);
}

}  // namespace

std::string print_config_text(const Settings& settings) {
  std::string out;
  for (const Option& option : settings.schema().options()) {
    const Setting& setting = settings.setting(option.key);
    out += line_of(option, setting) + "  # from " + setting.origin.text() + "\n";
  }
  return out;
}

std::string resolved_toml(const Settings& settings) {
  std::string out = "# All settings of a run, whatever they came from. Read again with --recipe.\n";
  std::string group;
  for (const Option& option : settings.schema().options()) {
    if (option.per_call) continue;
    if (option.group != group) out += "\n# " + option.group + "\n";
    group = option.group;
    out += line_of(option, settings.setting(option.key)) + "\n";
  }
  return out;
}

}  // namespace yoke::settings
