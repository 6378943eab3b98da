#pragma once

#include <exception>
#include <source_location>
#include <string>
#include <string_view>

namespace yoke::core {

/// What kind of thing went wrong. docs/errors.md gives each code's meaning, exit status and next
/// step.
enum class Code {
  invalid_argument,  ///< the caller asked for something that cannot be
  not_found,         ///< a file, name or device is not there
  unsupported,       ///< it is there and cannot do this
  io,                ///< the system refused to read or write
  corrupt_data,      ///< what was read is not what it claims to be
  timeout,           ///< nothing came within the limit
  peer_lost,         ///< another rank is gone
  cuda,              ///< the device or its driver failed
  internal,          ///< a fault of Yoke itself
};

/// The code's name as written above, e.g. "corrupt_data".
[[nodiscard]] std::string_view name(Code code) noexcept;

/// The code of that name; internal for an unknown one (the text of a child of another version).
[[nodiscard]] Code code_from_name(std::string_view name) noexcept;

/// The one exception type that leaves the library.
///
///   throw Error(Code::not_found, "open data set: no file train-images in /data", "pass --data
///   DIR");
///
/// Message: lower case, no full stop: doing what, to what: what happened, with numbers and units.
/// Hint: one thing to do; may be empty.
/// Threads: a value; copies are independent.
class Error : public std::exception {
 public:
  Error(Code code, std::string message, std::string hint = {},
        std::source_location where = std::source_location::current());

  [[nodiscard]] Code code() const noexcept { return code_; }
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  [[nodiscard]] const std::string& hint() const noexcept { return hint_; }
  [[nodiscard]] const std::source_location& where() const noexcept { return where_; }
  [[nodiscard]] const std::string& cause() const noexcept { return cause_; }

  /// The same error with the text of what led to it.
  [[nodiscard]] Error caused_by(const std::exception& cause) const;

  /// The same error with `prefix` and ": " before its message, e.g. the rank or the file.
  [[nodiscard]] Error within(std::string_view prefix) const;

  /// Message, hint and cause in one text: "message / hint (cause: ...)".
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  void compose();

  Code code_;
  std::string message_;
  std::string hint_;
  std::source_location where_;
  std::string cause_;
  std::string text_;
};

}  // namespace yoke::core

namespace yoke {
using core::Code;
using core::Error;
}  // namespace yoke
