#pragma once

#include <cstdint>

namespace yoke::feed {

enum class Sharding {
  exact,         ///< every sample once over all ranks
  torch_compat,  ///< as PyTorch's DistributedSampler: rank r takes positions r, r + world_size,
                 ///< ..., and the tail is padded with the first samples (dropped with drop_last),
                 ///< so that all ranks have equally many
};

struct PlanOptions {
  std::int64_t length = 0;      ///< samples of the data set
  std::int64_t batch_size = 1;  ///< samples of a step on each rank
  int rank = 0;
  int world_size = 1;
  bool drop_last = false;  ///< leave out the last step where it is short
  Sharding sharding = Sharding::exact;
  std::int64_t first = 0;  ///< samples of this epoch that were handed out before, over all ranks
};

/// Which positions of an epoch's order this rank takes in each step.
///
///   Plan plan({.length = 60'000, .batch_size = 64, .rank = 1, .world_size = 2});
///   for (std::int64_t step = 0; step < plan.steps(); ++step)
///     for (std::int64_t row = 0; row < plan.rows(step); ++row)
///       use(order[plan.position(step, row)]);
///
/// In step k the ranks together take the k-th run of batch_size x world_size positions, each a
/// contiguous piece of it, as even as can be: so they see what one rank with batch_size x
/// world_size sees, and all ranks have equally many steps. In the last step the pieces are short,
/// and a rank may have 0 rows. docs/feed.md has the formulas.
///
/// Ranks: no communication; ranks that pass the same options but `rank` agree.
/// Threads: any (immutable).
/// Errors: invalid_argument for a length, batch size or rank that cannot be, and for an epoch of 0
///   steps from its start; unsupported for torch_compat that begins in the middle of a step.
/// Cost: O(1) memory and time.
class Plan {
 public:
  explicit Plan(const PlanOptions& options);

  [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }

  /// Of this rank in that step. Requires: 0 <= step < steps().
  [[nodiscard]] std::int64_t rows(std::int64_t step) const noexcept;

  /// Of all ranks in that step.
  [[nodiscard]] std::int64_t global_rows(std::int64_t step) const noexcept;

  /// Requires: 0 <= row < rows(step).
  [[nodiscard]] std::int64_t position(std::int64_t step, std::int64_t row) const noexcept;

  /// Samples of the epoch handed out over all ranks once `steps` steps are done, those before
  /// `first` included.
  [[nodiscard]] std::int64_t handed_out(std::int64_t steps) const noexcept;

  /// The number, in the whole epoch, of this plan's step 0: the steps that `first` samples filled.
  [[nodiscard]] std::int64_t first_step() const noexcept;

 private:
  PlanOptions options_;
  std::int64_t global_batch_;
  std::int64_t total_;  // positions that are handed out, padding included
  std::int64_t steps_;
};

}  // namespace yoke::feed
