#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace yoke::device {

/// Processors that this process may use: those of its affinity mask, and no more than its control
/// groups' CPU quota (version 1 or 2, the tightest level, rounded up). At least 1. `root`: where
/// /proc and /sys are looked for.
[[nodiscard]] int usable_cores(const std::filesystem::path& root = "/");

/// This machine's name, without its domain; "localhost" if the system gives none.
[[nodiscard]] std::string host_name();

struct HostMemory {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;  ///< without swapping; no more than the limit
  std::uint64_t limit_bytes =
      0;  ///< of the tightest control group; total_bytes where there is none
  std::uint64_t shared_bytes = 0;       ///< size of /dev/shm: 64 MiB in a plain container
  std::uint64_t shared_free_bytes = 0;  ///< 0 where there is no /dev/shm
};

[[nodiscard]] HostMemory host_memory(const std::filesystem::path& root = "/");

}  // namespace yoke::device
