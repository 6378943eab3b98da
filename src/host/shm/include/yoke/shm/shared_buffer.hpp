#pragma once

#include <cstddef>
#include <memory>

namespace yoke::shm {

struct Region;

/// Bytes of this rank that every rank of its team has mapped: what Team::start_all_reduce works on
/// in place, without a copy.
///
///   SharedBuffer bucket = team.allocate(25 << 20);
///   auto* gradients = reinterpret_cast<float*>(bucket.data());
///
/// Owns: a mapping of each rank's memory. A rank's memory goes back to the system once every rank
/// has
///   dropped the buffer; it may outlive its team.
/// Threads: a value; the bytes are the caller's, except between start_all_reduce() and done().
/// Cost: address space of size() times ranks; memory of size() per rank.
class SharedBuffer {
 public:
  SharedBuffer() = default;  ///< holds nothing

  /// This rank's bytes, zero at first and page aligned.
  [[nodiscard]] std::byte* data() const noexcept;

  [[nodiscard]] std::size_t size() const noexcept;

 private:
  friend class Team;
  explicit SharedBuffer(std::shared_ptr<const Region> region) : region_(std::move(region)) {}

  std::shared_ptr<const Region> region_;  // also owned by operations in flight
};

}  // namespace yoke::shm
