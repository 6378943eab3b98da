#pragma once

#include <filesystem>
#include <string>

#include "yoke/core/environment.hpp"

namespace yoke::cluster {

/// By which the machines of a job know each other: at least 16 bytes, never in an argument list.
struct Secret {
  std::string bytes{};
  std::string source{};  ///< for messages: "$YOKE_SECRET", or a file's path
};

/// What `file` holds ("-": the first line of standard input), else $YOKE_SECRET, else
/// $XDG_CONFIG_HOME/yoke/secret (~/.config/yoke/secret), which is made, with random bytes and mode
/// 0600, if it is not there: machines that share a home folder need no more.
/// Errors: not_found and io; invalid_argument for a file that others may read, or too few bytes.
[[nodiscard]] Secret find_secret(const std::filesystem::path& file,
                                 const core::EnvironmentMap& variables);

/// The key of one job: of no use for another one of the same user.
[[nodiscard]] std::string job_key(const Secret& secret, const std::string& job_id);

}  // namespace yoke::cluster
