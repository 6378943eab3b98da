#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace yoke::shm {

/// 128 random bits: tells a segment from whatever else a descriptor number might lead to.
using Nonce = std::array<std::uint64_t, 2>;

/// What another rank needs in order to find a segment.
struct SegmentAddress {
  pid_t pid{0};
  int descriptor{-1};
  std::size_t bytes{0};  ///< of the payload
  Nonce nonce{};
};

/// Memory that ranks share: a memfd of one rank, mapped by the others through /proc/<pid>/fd.
///
/// Threads of one process get one and the same mapping, so that thread sanitizer sees the accesses
/// of all ranks at equal addresses.
/// Owns: its mapping and, until close_descriptor(), the descriptor by which peers find it. The
///   system frees the memory with the last mapping, whichever way the processes end.
class Segment {
 public:
  /// Requires, where `populate` takes the memory at once: require_memory() has agreed.
  /// Errors: io, with the system's reason.
  static std::shared_ptr<Segment> create(std::size_t bytes, bool populate);

  /// Errors: unsupported, with the reason, if it cannot be reached or is another one.
  static std::shared_ptr<Segment> open(const SegmentAddress& address, bool populate);

  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  [[nodiscard]] std::byte* data() const noexcept;  ///< page aligned
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }
  [[nodiscard]] SegmentAddress address() const noexcept;

  /// To be called once all ranks have opened it.
  void close_descriptor() noexcept;

 private:
  Segment() = default;
  void map(int descriptor, bool populate, const std::string& what);

  int descriptor_{-1};
  void* mapping_{nullptr};  // a page with the nonce, then the payload
  std::size_t bytes_{0};
  Nonce nonce_{};
};

}  // namespace yoke::shm
