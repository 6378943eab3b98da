#pragma once

#include <optional>
#include <string>
#include <vector>

#include "yoke/core/environment.hpp"
#include "yoke/settings/resolve.hpp"
#include "yoke/settings/train_settings.hpp"

namespace yoke::start {

/// What the words of `yoke train` or `yoke eval` ask for.
struct Request {
  settings::Settings settings;
  std::optional<std::string>
      answer{};  ///< to --help or --print-config: print it, and nothing else is wanted
  settings::TrainSettings values{};  ///< where there is no answer
};

/// Errors: those of settings::resolve() and train_settings().
[[nodiscard]] Request train_request(const std::vector<std::string>& words,
                                    const core::EnvironmentMap& variables,
                                    const settings::Schema& schema);
[[nodiscard]] Request eval_request(const std::vector<std::string>& words,
                                   const core::EnvironmentMap& variables,
                                   const settings::Schema& schema);

}  // namespace yoke::start
