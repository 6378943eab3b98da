#pragma once

#include <sys/types.h>

#include <cstdint>

namespace yoke::shm {

/// A process that cannot be mistaken for a later one of the same number.
struct Process {
  pid_t pid{0};
  std::uint64_t start_time{0};  ///< clock ticks after boot, field 22 of /proc/<pid>/stat
};

/// The calling process.
[[nodiscard]] Process this_process();

/// Whether it still runs; a zombie does not.
[[nodiscard]] bool is_alive(const Process& process);

}  // namespace yoke::shm
