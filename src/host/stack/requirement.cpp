#include "yoke/stack/requirement.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "yoke/core/text.hpp"

namespace yoke::stack {
namespace {

bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
}

std::string_view take_name(std::string_view& rest) {
  const auto end = std::find_if_not(rest.begin(), rest.end(), is_name_char);
  const auto length = static_cast<std::size_t>(end - rest.begin());
  const std::string_view out = rest.substr(0, length);
  rest = core::trimmed(rest.substr(length));
  return out;
}

bool take_extras(std::string_view& rest, std::vector<std::string>& extras) {
  if (!rest.starts_with("[")) return true;
  const std::size_t close = rest.find(']');
  if (close == std::string_view::npos) return false;
  for (const std::string& extra : core::split(rest.substr(1, close - 1), ','))
    extras.emplace_back(core::trimmed(extra));
  rest = core::trimmed(rest.substr(close + 1));
  return true;
}

std::string_view without_brackets(std::string_view text) {
  if (text.starts_with("(") && text.ends_with(")")) return text.substr(1, text.size() - 2);
  return text;
}

}  // namespace

std::string canonical_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool separates = c == '-' || c == '_' || c == '.';
    if (separates && (out.empty() || out.back() == '-')) continue;
    out += separates ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

std::optional<Requirement> Requirement::parse(std::string_view text) {
  Requirement out;
  const std::size_t semicolon = text.find(';');
  if (semicolon != std::string_view::npos) {
    out.marker = std::string(core::trimmed(text.substr(semicolon + 1)));
    text = text.substr(0, semicolon);
  }
  std::string_view rest = core::trimmed(text);
  out.name = canonical_name(take_name(rest));
  if (out.name.empty() || !take_extras(rest, out.extras)) return std::nullopt;
  if (rest.starts_with("@")) {
    out.url = std::string(core::trimmed(rest.substr(1)));
    return out.url.empty() ? std::nullopt : std::optional(std::move(out));
  }
  auto versions = Specifiers::parse(without_brackets(rest));
  if (!versions) return std::nullopt;
  out.versions = std::move(*versions);
  return out;
}

}  // namespace yoke::stack
