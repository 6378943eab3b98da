#include "option_words.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cli {
namespace {

using core::text;

bool holds(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

[[noreturn]] void unknown(const OptionTable& table, const std::string& name) {
  std::vector<std::string> known = table.values;
  known.insert(known.end(), table.flags.begin(), table.flags.end());
  throw Error(Code::invalid_argument, text(table.command, ": unknown option ", name),
              core::unknown_name_hint(name, known));
}

}  // namespace

bool OptionWords::has(const std::string& flag) const { return holds(flags, flag); }

std::optional<std::string> OptionWords::value(const std::string& name) const {
  const auto found = values.find(name);
  return found == values.end() ? std::nullopt : std::optional(found->second.back());
}

std::vector<std::string> OptionWords::list(const std::string& name) const {
  std::vector<std::string> out;
  const auto found = values.find(name);
  if (found == values.end()) return out;
  for (const std::string& value : found->second) {
    for (std::string& item : core::split(value, ',')) out.push_back(std::move(item));
  }
  return out;
}

OptionWords read_options(const OptionTable& table, const std::vector<std::string>& words) {
  OptionWords out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      out.rest.insert(out.rest.end(), words.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                      words.end());
      break;
    }
    const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    const std::string name = word.substr(0, equals);
    if (holds(table.flags, word)) {
      out.flags.push_back(word);
    } else if (!word.starts_with("-") || word == "-") {
      out.rest.push_back(word);
    } else if (!holds(table.values, name)) {
      unknown(table, name);
    } else if (equals == std::string::npos && i + 1 == words.size()) {
      throw Error(Code::invalid_argument, text(table.command, ": ", name, " needs a value"));
    } else {
      out.values[name].push_back(equals == std::string::npos ? words[++i]
                                                             : word.substr(equals + 1));
    }
  }
  return out;
}

}  // namespace yoke::cli
