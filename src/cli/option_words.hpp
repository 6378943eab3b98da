#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace yoke::cli {

// The options that a command takes.
struct OptionTable {
  std::string command{};              // as in messages: "yoke doctor"
  std::vector<std::string> values{};  // with a value: --name VALUE or --name=VALUE
  std::vector<std::string> flags{};   // without
};

// What the words say; a value option that was given twice keeps both.
struct OptionWords {
  std::map<std::string, std::vector<std::string>> values{};
  std::vector<std::string> flags{};
  std::vector<std::string> rest{};  // what is no option; all of what follows --

  [[nodiscard]] bool has(const std::string& flag) const;
  [[nodiscard]] std::optional<std::string> value(const std::string& name) const;  // the last one
  [[nodiscard]] std::vector<std::string> list(const std::string& name) const;     // split at commas
};

// Errors: invalid_argument, naming the option.
[[nodiscard]] OptionWords read_options(const OptionTable& table,
                                       const std::vector<std::string>& words);

}  // namespace yoke::cli
