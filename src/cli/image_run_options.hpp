#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "yoke/core/environment.hpp"
#include "yoke/image/run_request.hpp"

namespace yoke::cli {

// What the words of `yoke image run` say.
struct RunWords {
  image::RunRequest request{};
  std::string engine{};         // empty: by what is here
  std::string emit{};           // a form to write instead of running
  std::string host_root = "/";  // where the driver is looked for
  bool plan = false;
  bool systemd = false;
  bool help = false;
};

// Reads options as docker does, up to the image; a first "--" after it is taken away.
// Errors: invalid_argument, naming the option.
[[nodiscard]] RunWords parse_run(const std::vector<std::string>& words,
                                 const core::EnvironmentMap& caller);

[[nodiscard]] std::string_view run_usage();

}  // namespace yoke::cli
