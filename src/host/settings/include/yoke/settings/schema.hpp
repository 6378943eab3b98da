#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace yoke::settings {

/// What a value may be. A path is text whose help says FILE or DIR.
enum class Type { toggle, integer, number, text, choice, path, integers, numbers, texts };

/// monostate: not set.
using Value =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                 std::vector<double>, std::vector<std::string>>;

/// The numbers that are allowed; for lists, of each item.
struct Range {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool without_least = false;  ///< the least itself is not allowed
  bool without_most = false;
};

/// One row of the table: everything that a flag, a variable, a recipe key, the help and an error
/// text need.
struct Option {
  std::string key;  ///< "batch-size": the flag is --batch-size, the variable YOKE_BATCH_SIZE
  Type type = Type::text;
  Value fallback{};        ///< the default; monostate: not set unless somebody sets it
  std::string help{};      ///< half a sentence, without a full stop
  std::string group{};     ///< heading in the help
  std::string metavar{};   ///< "DIR"; empty: by type
  std::string if_unset{};  ///< what an option without a value means: "one per GPU, else 1"
  Range range{};           ///< integer(s), number(s)
  std::vector<std::string> choices{};  ///< choice
  std::vector<std::string> aliases{};  ///< other keys with the same meaning
  bool per_call = false;  ///< about this one command, not about the run: no recipe may hold it
  bool hidden = false;    ///< not in the help
};

/// The table of a command's options, in the order of its help.
///
///   const Schema schema("yoke train [flags]", {{.key = "lr", .type = Type::number, .fallback =
///   0.1}});
///
/// Errors: internal at construction for a key twice or a default that its own option does not
/// allow.
class Schema {
 public:
  Schema(std::string usage, std::vector<Option> options);

  [[nodiscard]] const std::string& usage() const noexcept { return usage_; }
  [[nodiscard]] const std::vector<Option>& options() const noexcept { return options_; }

  /// The option with that key or alias, written with '-' or '_'; null if there is none.
  [[nodiscard]] const Option* find(std::string_view name) const;

  /// All keys and aliases, to guess what an unknown one meant.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::string usage_;
  std::vector<Option> options_;
};

}  // namespace yoke::settings
