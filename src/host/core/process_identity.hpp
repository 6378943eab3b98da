#pragma once

#include <cstdint>

namespace yoke::core {

// Who a process is, so that a reader on the host, or after the process's end, does not take another
// for it.
struct ProcessIdentity {
  std::uint64_t pid = 0;
  std::uint64_t host_pid = 0;       // 0 inside a container, where it cannot be known
  std::uint64_t pid_namespace = 0;  // inode; 0 where the kernel does not tell
  std::uint64_t start_time = 0;     // clock ticks since boot
};

[[nodiscard]] ProcessIdentity own_identity();

}  // namespace yoke::core
