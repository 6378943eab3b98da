#include "yoke/core/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <numeric>

namespace yoke::core {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U);
      row[j] = std::min({replaced, above + 1, row[j - 1] + 1});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string bytes_text(std::uint64_t bytes) {
  if (bytes < 1024) return text(bytes, " B");
  constexpr std::array<const char*, 5> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes) / 1024.0;
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < kUnits.size()) {
    value /= 1024.0;
    ++unit;
  }
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), "%.1f %s", value, kUnits[unit]);
  return out.data();
}

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::vector<std::string> split(std::string_view whole, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = whole.find(separator, begin);
    parts.emplace_back(whole.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string_view trimmed(std::string_view whole) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const std::size_t begin = whole.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return whole.substr(begin, whole.find_last_not_of(kSpace) - begin + 1);
}

std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  const std::size_t limit = std::max<std::size_t>(1, word.size() / 3);
  std::optional<std::string> best;
  std::size_t best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string unknown_name_hint(std::string_view word, const std::vector<std::string>& candidates) {
  if (const auto near = nearest(word, candidates)) return "did you mean " + *near + "?";
  return "known: " + joined(candidates);
}

std::optional<std::int64_t> parse_integer(std::string_view whole) {
  std::int64_t value = 0;
  const char* end = whole.data() + whole.size();
  const auto [stop, error] = std::from_chars(whole.data(), end, value);
  if (error != std::errc{} || stop != end || whole.empty()) return std::nullopt;
  return value;
}

bool matches_pattern(std::string_view whole, std::string_view pattern) {
  std::size_t at = 0;
  std::size_t p = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (at < whole.size()) {
    if (p < pattern.size() &&
        (pattern[p] == '?' || (pattern[p] == whole[at] && pattern[p] != '*'))) {
      ++at;
      ++p;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = at;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      at = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace yoke::core
