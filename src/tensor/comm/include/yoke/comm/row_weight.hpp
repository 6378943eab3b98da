#pragma once

namespace yoke::comm {

/// The rows as which this thread's forward counts in the mean over ranks, while a wrapper that
/// averages by rows runs it: layers that mix gradients of several ranks (synchronised norms) weigh
/// by it. Below 0: no wrapper; each rank's batch counts with its own rows.
///
/// Micro-batches of one window all count as the window's first: the wrapper scales their gradients
/// to that (parallel, Note [Exact means]).
[[nodiscard]] double row_weight() noexcept;
void set_row_weight(double weight) noexcept;

}  // namespace yoke::comm
