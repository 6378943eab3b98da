#pragma once

#include <string>
#include <vector>

#include "option_words.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/image/build_image.hpp"

namespace yoke::cli {

// What the words of `yoke image render`, `lock` and `build` have in common.
struct BuildWords {
  image::BuildRequest request{};
  image::BuildHost host{};
  image::YokeSource yoke{};
  std::string lock{};  // a file; empty: ours, or a new one
};

// The options that read_build_words() takes.
[[nodiscard]] std::vector<std::string> build_value_options();

// Errors: invalid_argument.
[[nodiscard]] BuildWords read_build_words(const OptionWords& words,
                                          const core::EnvironmentMap& variables);

// The lock that was named, or the one of this program; nothing: it has to be made.
[[nodiscard]] std::optional<image::WheelLock> given_lock(const BuildWords& words,
                                                         const image::BuildPlan& plan);

}  // namespace yoke::cli
