#pragma once

#include <string>
#include <utility>
#include <vector>

#include "yoke/doctor/check.hpp"

namespace yoke::doctor {

// The checks by what they look at; each file holds its table.
[[nodiscard]] std::vector<Check> host_checks();
[[nodiscard]] std::vector<Check> driver_checks();
[[nodiscard]] std::vector<Check> stack_checks();

[[nodiscard]] inline Finding pass(std::string text) {
  return {.status = Status::pass, .text = std::move(text)};
}
[[nodiscard]] inline Finding skip(std::string text) {
  return {.status = Status::skip, .text = std::move(text)};
}
[[nodiscard]] inline Finding warn(std::string text, std::string fix = {}) {
  return {.status = Status::warn, .text = std::move(text), .fix = std::move(fix)};
}
[[nodiscard]] inline Finding fail(std::string text, std::string fix = {}) {
  return {.status = Status::fail, .text = std::move(text), .fix = std::move(fix)};
}

}  // namespace yoke::doctor
