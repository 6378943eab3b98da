#pragma once

#include <functional>

#include "yoke/comm/group.hpp"
#include "yoke/comm/world.hpp"

namespace yoke::comm {

/// Runs `rank_main` on `size` threads of this process, each with a World of its own on the CPU, and
/// returns when all have ended. For tests and small tools; errors of a rank reach the others as
/// peer_lost, and the first rank's own error that is not peer_lost (else any) is thrown.
///
///   run_local_ranks(2, [](World& world) { at::Tensor one = at::ones({1});
///   world.group().all_reduce(one); });
void run_local_ranks(int size, const std::function<void(World&)>& rank_main,
                     LocalGroupOptions options = {});

}  // namespace yoke::comm
