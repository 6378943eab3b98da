#pragma once

/// Room kernels: operations on a card that torch has only in pieces, each with a reference by plain
/// operations. Needs torch; kernels are compiled by NVRTC on first use.

#include "yoke/kernels/batch_norm.hpp"
#include "yoke/kernels/max_pool.hpp"
#include "yoke/kernels/stem_fold.hpp"

namespace yoke::kernels {

/// Whether layers may use the kernels, in all threads; on at first. For comparisons with torch's
/// operations.
void enable(bool on) noexcept;

}  // namespace yoke::kernels
