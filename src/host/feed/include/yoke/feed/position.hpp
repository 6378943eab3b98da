#pragma once

#include <cstdint>
#include <span>

namespace yoke::feed {

/// Where a run stands in its data: all that is needed to go on with the same samples, in the same
/// order, with the same random choices, on any number of threads or ranks.
///
/// It counts the samples that were handed out, not those fetched ahead. The end of an epoch is a
/// position like any other: `samples` is then the number handed out in that epoch, and nothing is
/// left of it.
struct Position {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t samples = 0;  ///< of this epoch, over all ranks
  std::int64_t length = 0;   ///< of the data set, to notice another one

  friend bool operator==(const Position&, const Position&) = default;
};

/// What ranks must agree on before the first batch, in numbers that can be gathered from all of
/// them.
struct Agreement {
  std::uint64_t seed = 0;
  std::int64_t length = 0;
  std::int64_t batch_size = 0;
  std::int64_t world_size = 0;
  std::int64_t drop_last = 0;
  std::int64_t shuffle = 0;
  std::int64_t sharding = 0;
  std::uint64_t fingerprint = 0;  ///< of the data set: its list of files, say

  friend bool operator==(const Agreement&, const Agreement&) = default;
};

/// Errors: invalid_argument where a rank differs from rank 0, with that rank, what differs, and
/// both values.
void require_agreement(std::span<const Agreement> by_rank);

}  // namespace yoke::feed
