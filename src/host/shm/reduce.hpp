#pragma once

#include <cstddef>
#include <span>

#include "yoke/shm/dtype.hpp"
#include "yoke/shm/reduction.hpp"

namespace yoke::shm {

struct Source {
  const std::byte* data{nullptr};
  double scale{1.0};  ///< for means
};

struct ReduceJob {
  Dtype dtype{Dtype::float32};
  Reduction reduction{Reduction::sum};
  std::span<const Source> sources{};           ///< in rank order; none gives zeros
  double divisor{1.0};                         ///< for means
  std::span<std::byte* const> destinations{};  ///< each gets the result; may be sources
  std::size_t count{0};                        ///< elements
};

/// Reduces the sources into every destination. Each element's bits depend on its own sources only:
/// not on where it stands or on the instructions that this machine has.
/// Requires: dtype and reduction fit (no mean of integers).
void reduce(const ReduceJob& job);

/// The elements of rank `rank` when `count` elements at `offset_bytes` are shared out over the
/// ranks: borders lie on cache lines, so that no two ranks write to one.
struct Slice {
  std::size_t begin{0};
  std::size_t count{0};
};
[[nodiscard]] Slice slice_of(std::size_t count, std::size_t element_bytes, std::size_t offset_bytes,
                             int rank, int ranks) noexcept;

}  // namespace yoke::shm
