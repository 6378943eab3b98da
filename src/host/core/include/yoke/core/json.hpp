#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "yoke/core/error.hpp"

namespace yoke::core {

/// JSON whose keys keep the order in which they were set, so that equal runs write equal files.
using Json = nlohmann::ordered_json;

/// The value that `text` holds. Errors: corrupt_data, which names `what` (a file's path) and the
/// place.
[[nodiscard]] inline Json parse_json(std::string_view text, std::string_view what) try {
  return Json::parse(text);
} catch (const nlohmann::json::exception& error) {
  throw Error(Code::corrupt_data, "read " + std::string(what) + ": not JSON").caused_by(error);
}

/// `value` in one line. Bytes that are not UTF-8 (an error text that was cut, a strange path)
/// become U+FFFD; never throws for them.
[[nodiscard]] inline std::string json_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// `value` over several lines, with a last line end; otherwise as json_line.
[[nodiscard]] inline std::string json_text(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace yoke::core
