#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "yoke/settings/schema.hpp"

namespace yoke::settings {

// A value as a file or a command line gives it, before an option says what it must be.
using Scalar = std::variant<bool, std::int64_t, double, std::string>;

// Where a value stands, for error texts: "--lr nan", "YOKE_LR=nan", "recipe a.toml:3: lr = nan".
using Place = std::string;

// What the option allows: "an integer, at least 1; leave it out for one per GPU, else 1".
[[nodiscard]] std::string allowed_text(const Option& option);

// The value that `words` (one, or several for a list) mean. Lists are also split at commas.
// Errors: invalid_argument, beginning with `place`.
[[nodiscard]] Value value_from_words(const Option& option, const std::vector<std::string>& words,
                                     const Place& place);

// The value that the TOML scalars mean; `is_array` tells [1] from 1.
// Errors: invalid_argument, beginning with `place`.
[[nodiscard]] Value value_from_scalars(const Option& option, const std::vector<Scalar>& scalars,
                                       bool is_array, const Place& place);

// As TOML writes it.
[[nodiscard]] std::string toml_text(const Value& value);
[[nodiscard]] std::string toml_text(const Scalar& scalar);
[[nodiscard]] std::string toml_string(std::string_view text);

// The option's variable: YOKE_BATCH_SIZE.
[[nodiscard]] std::string variable_name(const Option& option);

}  // namespace yoke::settings
