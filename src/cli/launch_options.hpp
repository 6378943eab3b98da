#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "yoke/launch/launch.hpp"

namespace yoke::cli {

// What the words of `yoke launch` say.
struct LaunchRequest {
  launch::LaunchOptions options;
  std::string ranks;  // as given: a number, gpu, cpu, auto; empty if it was not
  std::string ranks_option = "--nproc-per-node";  // the name under which it was given
  bool help = false;
};

// Reads options up to the program; everything from there on is the program's, byte for byte.
// Errors: invalid_argument, naming the option or quoting the value.
[[nodiscard]] LaunchRequest parse_launch(const std::vector<std::string>& words);

[[nodiscard]] std::string_view launch_usage();

}  // namespace yoke::cli
