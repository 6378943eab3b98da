#include "value.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <system_error>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::settings {
namespace {

using core::Code;
using core::Error;
using core::text;

bool is_list(Type type) {
  return type == Type::integers || type == Type::numbers || type == Type::texts;
}

/// The type of a list's items; other types stay.
Type item_type(Type type) {
  switch (type) {
    case Type::integers: return Type::integer;
    case Type::numbers: return Type::number;
    case Type::texts: return Type::text;
    default: return type;
  }
}

/// As short as it can be and still give the same number; whole numbers of a usual size without an
/// exponent.
std::string number_text(double value) {
  std::array<char, 40> digits{};
  char* const last = digits.data() + digits.size();
  const bool plain = std::abs(value) < 1e15 && value == std::trunc(value);
  const auto result = plain ? std::to_chars(digits.data(), last, value, std::chars_format::fixed)
                            : std::to_chars(digits.data(), last, value);
  return {digits.data(), result.ptr};
}

[[noreturn]] void refuse(const Option& option, const Place& place, const std::string& why) {
  throw Error(Code::invalid_argument, text(place, ": ", why), "allowed: " + allowed_text(option));
}

bool is_utf8(std::string_view whole) {
  std::size_t i = 0;
  while (i < whole.size()) {
    const auto lead = static_cast<unsigned char>(whole[i]);
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xC2 ? 0
                               : lead < 0xE0 ? 2
                               : lead < 0xF0 ? 3
                               : lead < 0xF5 ? 4
                                             : 0;
    if (length == 0 || i + length > whole.size()) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(whole[i + k]) & 0xC0U) != 0x80U) return false;
    }
    i += length;
  }
  return true;
}

std::optional<bool> parse_toggle(std::string_view word) {
  for (const char* yes : {"true", "yes", "on", "1"}) {
    if (word == yes) return true;
  }
  for (const char* no : {"false", "no", "off", "0"}) {
    if (word == no) return false;
  }
  return std::nullopt;
}

std::optional<double> parse_number(std::string_view word) {
  double value = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

void require_range(const Option& option, double value, const Place& place) {
  const Range& range = option.range;
  const std::string shown = number_text(value);
  if (value < range.least)
    refuse(option, place, text(shown, " is below ", number_text(range.least)));
  if (value > range.most) refuse(option, place, text(shown, " is above ", number_text(range.most)));
  const bool at_open_end =
      (range.without_least && value == range.least) || (range.without_most && value == range.most);
  if (at_open_end) refuse(option, place, text(shown, " itself is not allowed"));
}

void require_text(const Option& option, const std::string& value, const Place& place) {
  if (!is_utf8(value)) refuse(option, place, "not UTF-8");
  if (value.empty()) refuse(option, place, "empty");
  if (option.type != Type::choice) return;
  if (std::find(option.choices.begin(), option.choices.end(), value) != option.choices.end())
    return;
  throw Error(Code::invalid_argument, text(place, ": unknown ", option.key, " \"", value, "\""),
              core::unknown_name_hint(value, option.choices));
}

/// The scalar that a word of a command line means for an item of this option.
Scalar scalar_from_word(const Option& option, const std::string& word, const Place& place) {
  switch (item_type(option.type)) {
    case Type::toggle:
      if (const auto value = parse_toggle(word)) return *value;
      refuse(option, place, "neither true nor false");
    case Type::integer:
      if (const auto value = core::parse_integer(word)) return *value;
      refuse(option, place, "not an integer");
    case Type::number:
      if (const auto value = parse_number(word)) return *value;
      refuse(option, place, "not a number");
    default: return word;
  }
}

/// Takes a scalar for an item of the option's type, checked.
Value item_from_scalar(const Option& option, const Scalar& scalar, const Place& place) {
  switch (item_type(option.type)) {
    case Type::toggle:
      if (const bool* value = std::get_if<bool>(&scalar)) return *value;
      refuse(option, place, "neither true nor false");
    case Type::integer:
      if (const auto* value = std::get_if<std::int64_t>(&scalar)) {
        require_range(option, static_cast<double>(*value), place);
        return *value;
      }
      refuse(option, place, "not an integer");
    case Type::number: {
      const auto* integer = std::get_if<std::int64_t>(&scalar);
      const auto* number = std::get_if<double>(&scalar);
      if (integer == nullptr && number == nullptr) refuse(option, place, "not a number");
      const double value = integer != nullptr ? static_cast<double>(*integer) : *number;
      if (!std::isfinite(value)) refuse(option, place, "not a finite number");
      require_range(option, value, place);
      return value;
    }
    default:
      if (const auto* value = std::get_if<std::string>(&scalar)) {
        require_text(option, *value, place);
        return *value;
      }
      refuse(option, place, "not a text");
  }
}

template <class Item>
Value list_from_scalars(const Option& option, const std::vector<Scalar>& scalars,
                        const Place& place) {
  std::vector<Item> items;
  for (const Scalar& scalar : scalars)
    items.push_back(std::get<Item>(item_from_scalar(option, scalar, place)));
  return items;
}

Value checked(const Option& option, const std::vector<Scalar>& scalars, const Place& place) {
  switch (option.type) {
    case Type::integers: return list_from_scalars<std::int64_t>(option, scalars, place);
    case Type::numbers: return list_from_scalars<double>(option, scalars, place);
    case Type::texts: return list_from_scalars<std::string>(option, scalars, place);
    default: return item_from_scalar(option, scalars.front(), place);
  }
}

std::string range_text(const Range& range) {
  std::string out;
  if (std::isfinite(range.least)) {
    out += text(range.without_least ? ", above " : ", at least ", number_text(range.least));
  }
  if (std::isfinite(range.most)) {
    out += text(std::isfinite(range.least) ? " and " : ", ",
                range.without_most ? "below " : "at most ", number_text(range.most));
  }
  return out;
}

std::string type_text(const Option& option) {
  switch (option.type) {
    case Type::toggle: return "true or false";
    case Type::integer: return "an integer" + range_text(option.range);
    case Type::number: return "a number" + range_text(option.range);
    case Type::text: return "a text";
    case Type::choice: return core::joined(option.choices);
    case Type::path: return "a path";
    case Type::integers: return "a list of integers" + range_text(option.range);
    case Type::numbers: return "a list of numbers" + range_text(option.range);
    case Type::texts: return "a list of texts";
  }
  return "";
}

std::string item_text(bool value) { return value ? "true" : "false"; }
std::string item_text(std::int64_t value) { return text(value); }
std::string item_text(const std::string& value) { return toml_string(value); }
std::string item_text(double value) {
  const std::string out = number_text(value);
  // TOML tells 1.0 from 1. With an exponent it needs no point, and inf and nan are words.
  return out.find_first_of(".en") == std::string::npos ? out + ".0" : out;
}
std::string item_text(std::monostate) { return ""; }

template <class Item>
std::string item_text(const std::vector<Item>& items) {
  std::vector<std::string> parts;
  for (const Item& item : items) parts.push_back(item_text(item));
  return "[" + core::joined(parts) + "]";
}

}  // namespace

std::string allowed_text(const Option& option) {
  std::string out = type_text(option);
  if (!option.if_unset.empty()) out += "; leave it out for: " + option.if_unset;
  return out;
}

Value value_from_words(const Option& option, const std::vector<std::string>& words,
                       const Place& place) {
  std::vector<Scalar> scalars;
  for (const std::string& word : words) {
    if (!is_list(option.type)) {
      scalars.assign({scalar_from_word(option, word, place)});  // the last one counts
      continue;
    }
    if (word.empty()) continue;  // --freeze "" is the empty list
    for (const std::string& item : core::split(word, ',')) {
      scalars.push_back(scalar_from_word(option, std::string(core::trimmed(item)), place));
    }
  }
  return checked(option, scalars, place);
}

Value value_from_scalars(const Option& option, const std::vector<Scalar>& scalars, bool is_array,
                         const Place& place) {
  if (is_array && !is_list(option.type)) refuse(option, place, "a list, where one value is wanted");
  return checked(option, scalars, place);
}

std::string toml_string(std::string_view whole) {
  std::string out = "\"";
  for (const char c : whole) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
          std::array<char, 8> code{};
          std::snprintf(code.data(), code.size(), "\\u%04X", static_cast<unsigned>(c));
          out += code.data();
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

std::string toml_text(const Value& value) {
  return std::visit([](const auto& held) { return item_text(held); }, value);
}

std::string toml_text(const Scalar& scalar) {
  return std::visit([](const auto& held) { return item_text(held); }, scalar);
}

std::string variable_name(const Option& option) {
  std::string out = "YOKE_" + option.key;
  for (char& c : out)
    c = c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return out;
}

}  // namespace yoke::settings
