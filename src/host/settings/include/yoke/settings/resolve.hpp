#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/core/environment.hpp"
#include "yoke/settings/schema.hpp"

namespace yoke::settings {

enum class Source { fallback, site, recipe, variable, flag };

/// Where a value came from.
struct Origin {
  Source source = Source::fallback;
  std::string name{};  ///< the variable, or FILE:LINE

  /// "flag", "YOKE_LR", "recipe base.toml:3", "site /etc/yoke/site.toml:2", "default".
  [[nodiscard]] std::string text() const;
};

struct Setting {
  Value value{};
  Origin origin{};
};

/// What resolve() reads, all of it, so that a test gives its own.
struct Sources {
  std::vector<std::string> arguments{};  ///< without the program's and the command's name
  core::EnvironmentMap variables{};
  std::filesystem::path site_file =
      "/etc/yoke/site.toml";  ///< read if it is there, unless $YOKE_SITE_FILE names one
  std::optional<std::filesystem::path>
      base_recipe{};  ///< counts less than --recipe, e.g. of the run to evaluate
};

/// The values of all options of a schema.
///
/// Threads: any while nobody calls settle().
/// Errors: internal from a getter that names no option or the wrong type.
class Settings {
 public:
  Settings(Schema schema, std::map<std::string, Setting> values, bool wants_help);

  [[nodiscard]] const Schema& schema() const noexcept { return schema_; }

  /// --help or -h was among the flags.
  [[nodiscard]] bool wants_help() const noexcept { return wants_help_; }

  [[nodiscard]] const Setting& setting(std::string_view key) const;
  [[nodiscard]] bool is_set(std::string_view key) const;

  [[nodiscard]] bool toggle(std::string_view key) const;
  [[nodiscard]] std::int64_t integer(std::string_view key) const;
  [[nodiscard]] double number(std::string_view key) const;
  [[nodiscard]] const std::string& text(std::string_view key) const;  ///< text, choice, path
  [[nodiscard]] const std::vector<std::int64_t>& integers(std::string_view key) const;
  [[nodiscard]] const std::vector<double>& numbers(std::string_view key) const;
  [[nodiscard]] const std::vector<std::string>& texts(std::string_view key) const;

  /// Another value for an option, whose origin stays: what stands for the same in a recipe that is
  /// read elsewhere.
  void settle(std::string_view key, Value value);

 private:
  template <class T>
  [[nodiscard]] const T& as(std::string_view key) const;

  Schema schema_;
  std::map<std::string, Setting> values_;
  bool wants_help_;
};

/// Finds every option's value: flag, else YOKE_* variable, else recipe (the option "recipe", if the
/// schema has it), else base recipe, else site file, else default. Values that lose are checked as
/// well. docs/settings.md has the forms.
///
///   const Settings settings = resolve(train_schema(), {.arguments = {"--lr", "0.2"}, .variables =
///   core::environment()});
///
/// Errors: invalid_argument for an unknown flag or key (with the nearest), a value of the wrong
/// type or out of range,
///   a file that is not TOML, and `extends` in a circle, with FILE:LINE, flag or variable;
///   not_found for a file that is not there.
[[nodiscard]] Settings resolve(const Schema& schema, const Sources& sources);

}  // namespace yoke::settings
