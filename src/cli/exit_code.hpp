#pragma once

#include "yoke/launch/exit_code.hpp"

namespace yoke::cli {
using launch::exit_code;
}  // namespace yoke::cli
