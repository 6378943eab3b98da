#pragma once

/// Room kernels: operations on a card that torch has only in pieces, each with a reference by plain
/// operations. Needs torch; kernels are compiled by NVRTC on first use.

#include <cstdint>

#include "yoke/kernels/batch_norm.hpp"
#include "yoke/kernels/max_pool.hpp"
#include "yoke/kernels/stem_fold.hpp"

namespace yoke::kernels {

/// Whether layers may use the kernels, in all threads; on at first. For comparisons with torch's
/// operations.
void enable(bool on) noexcept;
[[nodiscard]] bool is_enabled() noexcept;

/// Bytes that the kernels' launches of this process had to move between the card and its memory,
/// each tensor counted once a pass. Replays of a captured step do not count.
struct Traffic {
  std::int64_t norm = 0;
  std::int64_t pooling = 0;
};
[[nodiscard]] Traffic traffic() noexcept;

}  // namespace yoke::kernels
