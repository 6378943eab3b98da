#pragma once

#include "yoke/core/error.hpp"

namespace yoke::launch {

/// The exit code of a program that ends with an error of this kind; docs/errors.md has the table.
[[nodiscard]] constexpr int exit_code(Code code) noexcept {
  switch (code) {
    case Code::invalid_argument:
    case Code::not_found: return 2;
    case Code::unsupported: return 3;
    default: return 1;
  }
}

}  // namespace yoke::launch
