#pragma once

#include <cstddef>
#include <cstdint>

namespace yoke::shm {

/// Bytes that this host, or the container that this process is in, can still give.
[[nodiscard]] std::uint64_t available_memory();

/// Refuses `bytes` for each of `ranks` ranks where `available` does not hold them. To be asked
/// before shared memory is taken: the system hands it out until the machine is full, and then ends
/// other processes. Errors: io.
void require_memory(std::size_t bytes, int ranks, std::uint64_t available);

}  // namespace yoke::shm
