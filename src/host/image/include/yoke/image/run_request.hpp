#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "yoke/core/environment.hpp"

namespace yoke::image {

/// -v HOST:CONTAINER[:ro]
struct Volume {
  std::string host{};
  std::string path{};
  bool read_only = false;
};

/// What the data loader's workers keep in shared memory.
struct LoaderShape {
  std::int64_t workers = 0;
  std::int64_t prefetch = 2;  ///< batches each
  std::int64_t batch_bytes = 0;
};
[[nodiscard]] std::int64_t shared_memory_need(const LoaderShape& loader) noexcept;

/// A container to run, in docker's words.
struct RunRequest {
  std::string image{};  ///< a root folder, an OCI layout, or a name
  std::vector<std::string> command{};
  std::vector<Volume> volumes{};
  std::vector<std::string> ports{};
  core::EnvironmentMap variables{};
  std::string folder{};  ///< -w
  std::string user{};    ///< -u UID[:GID]
  std::string name{};
  std::string entrypoint{};
  std::optional<std::string> gpus{};
  std::int64_t shared_bytes = 0;  ///< --shm-size; 0: as much as the loader needs, at least 1 GiB
  LoaderShape loader{};
  std::int64_t grace_seconds = 30;  ///< from SIGTERM to the end: what a checkpoint takes
  bool interactive = false;
  bool terminal = false;
  bool detached = false;
  bool remove = false;
  bool privileged = false;
  bool writable = false;             ///< writes go into the root folder itself
  bool allow_image_request = false;  ///< hear the image's own NVIDIA_VISIBLE_DEVICES

  [[nodiscard]] std::int64_t shared_memory() const noexcept;

  /// Files that ranks and loader workers may hold open: each tensor that a worker hands over is
  /// one.
  [[nodiscard]] std::int64_t open_files() const noexcept;
};

/// Of a thread; OpenMP and NCCL's proxies have little in the usual 8 MiB.
inline constexpr std::int64_t kStackBytes = std::int64_t{64} << 20;

/// 64m, 8g, 1073741824. Nothing for another text.
[[nodiscard]] std::optional<std::int64_t> parse_size(const std::string& text);

/// docker's --env-file: NAME=value lines; NAME alone takes the caller's value; # begins a comment.
/// Errors: invalid_argument naming file and line.
[[nodiscard]] core::EnvironmentMap parse_env_file(const std::string& text, const std::string& name,
                                                  const core::EnvironmentMap& caller);

/// HOST:CONTAINER[:ro|rw|z|Z]. Errors: invalid_argument quoting it.
[[nodiscard]] Volume parse_volume(const std::string& text);

}  // namespace yoke::image
