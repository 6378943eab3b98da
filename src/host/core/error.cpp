#include "yoke/core/error.hpp"

#include <array>
#include <utility>

namespace yoke::core {
namespace {

constexpr std::array<std::pair<Code, std::string_view>, 9> kNames{{
    {Code::invalid_argument, "invalid_argument"},
    {Code::not_found, "not_found"},
    {Code::unsupported, "unsupported"},
    {Code::io, "io"},
    {Code::corrupt_data, "corrupt_data"},
    {Code::timeout, "timeout"},
    {Code::peer_lost, "peer_lost"},
    {Code::cuda, "cuda"},
    {Code::internal, "internal"},
}};

}  // namespace

std::string_view name(Code code) noexcept {
  for (const auto& [value, text] : kNames) {
    if (value == code) return text;
  }
  return "internal";
}

Code code_from_name(std::string_view text) noexcept {
  for (const auto& [value, known] : kNames) {
    if (known == text) return value;
  }
  return Code::internal;
}

Error::Error(Code code, std::string message, std::string hint, std::source_location where)
    : code_(code), message_(std::move(message)), hint_(std::move(hint)), where_(where) {
  compose();
}

Error Error::caused_by(const std::exception& cause) const {
  Error copy = *this;
  copy.cause_ = cause.what();
  copy.compose();
  return copy;
}

Error Error::within(std::string_view prefix) const {
  Error copy = *this;
  copy.message_ = std::string(prefix) + ": " + message_;
  copy.compose();
  return copy;
}

void Error::compose() {
  text_ = message_;
  if (!hint_.empty()) text_ += " / " + hint_;
  if (!cause_.empty()) text_ += " (cause: " + cause_ + ")";
}

}  // namespace yoke::core
