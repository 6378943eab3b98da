#pragma once

#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::core {

/// The arguments written one after the other, as by operator<<: text("rank ", 3, ": lost").
template <class... Parts>
[[nodiscard]] std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

/// A number of bytes as people read it: 512 B, 25.0 MiB, 1.5 GiB.
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);

/// `parts` with `separator` between: "a, b, c".
[[nodiscard]] std::string joined(const std::vector<std::string>& parts,
                                 std::string_view separator = ", ");

/// The pieces of `text` between separators; empty pieces are kept.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

/// `text` without leading and trailing white space.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// The candidate with the least edit distance to `word`, if it is near enough to be a slip of the
/// pen (at most a third of the word's length, and at least 1).
[[nodiscard]] std::optional<std::string> nearest(std::string_view word,
                                                 const std::vector<std::string>& candidates);

/// "did you mean X?" for the nearest candidate, else "known: a, b, c": the hint for an unknown
/// name.
[[nodiscard]] std::string unknown_name_hint(std::string_view word,
                                            const std::vector<std::string>& candidates);

/// The whole of `text` as a decimal integer, or nothing.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);

/// Whether `text` fits a shell pattern in which * stands for any run and ? for one character.
[[nodiscard]] bool matches_pattern(std::string_view text, std::string_view pattern);

}  // namespace yoke::core
