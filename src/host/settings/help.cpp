#include <algorithm>
#include <cstddef>

#include "value.hpp"
#include "yoke/core/text.hpp"
#include "yoke/settings/report.hpp"

namespace yoke::settings {
namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kHelpColumn = 26;

std::string metavar(const Option& option) {
  if (!option.metavar.empty()) return option.metavar;
  switch (option.type) {
    case Type::toggle: return "";
    case Type::integer: return "N";
    case Type::number: return "X";
    case Type::text: return "TEXT";
    case Type::choice: return "NAME";
    case Type::path: return "PATH";
    case Type::integers: return "N,...";
    case Type::numbers: return "X,...";
    case Type::texts: return "TEXT,...";
  }
  return "";
}

std::string flag_text(const Option& option) {
  const bool is_on = option.type == Type::toggle && option.fallback == Value(true);
  const std::string var = metavar(option);
  return core::text("  --", is_on ? "no-" : "", option.key, var.empty() ? "" : " " + var);
}

/// As a flag takes it: no quotes, no brackets, 300 and not 300.0.
std::string plain_text(const Value& value) {
  std::string out;
  for (const char c : toml_text(value)) {
    if (c != '"' && c != '[' && c != ']' && c != ' ') out += c;
  }
  return out.ends_with(".0") ? out.substr(0, out.size() - 2) : out;
}

std::string default_text(const Option& option) {
  if (option.type == Type::toggle) return "";
  const bool unset = std::holds_alternative<std::monostate>(option.fallback);
  const std::string value = unset ? option.if_unset : plain_text(option.fallback);
  return value.empty() ? "" : " (default: " + value + ")";
}

std::string explanation(const Option& option) {
  std::string out = option.help;
  if (option.type == Type::choice) out += ": " + core::joined(option.choices);
  out += default_text(option);
  for (const std::string& alias : option.aliases) out += "; also --" + alias;
  return out;
}

/// `out` ends at some column of its last line; adds `words`, broken so that no line is longer than
/// kColumns.
void add_wrapped(std::string& out, std::size_t column, const std::string& words) {
  const std::string indent = "\n" + std::string(kHelpColumn, ' ');
  if (column + 1 >= kHelpColumn) {
    out += indent;
  } else {
    out += std::string(kHelpColumn - column, ' ');
  }
  std::size_t used = kHelpColumn;
  for (const std::string& word : core::split(words, ' ')) {
    if (used + 1 + word.size() > kColumns) {
      out += indent;
      used = kHelpColumn;
    }
    const bool first = used == kHelpColumn;
    out += (first ? "" : " ") + word;
    used += word.size() + (first ? 0 : 1);
  }
  out += "\n";
}

}  // namespace

std::string help_text(const Schema& schema) {
  std::string out = "usage: " + schema.usage() + "\n";
  std::string group;
  for (const Option& option : schema.options()) {
    if (option.hidden) continue;
    if (option.group != group) out += "\n" + option.group + "\n";
    group = option.group;
    const std::string flag = flag_text(option);
    out += flag;
    add_wrapped(out, flag.size(), explanation(option));
  }
  out +=
      "\nA flag counts more than its variable (YOKE_BATCH_SIZE for --batch-size), that\n"
      "more than the recipe, that more than the site file; --print-config tells.\n";
  return out;
}

}  // namespace yoke::settings
