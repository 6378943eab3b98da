#pragma once

#include "yoke/core/environment.hpp"
#include "yoke/launch/rank_count.hpp"
#include "yoke/launch/supervise.hpp"
#include "yoke/start/request.hpp"

namespace yoke::start {

/// Whether some launcher started this process as one of its ranks, so that it starts none itself.
[[nodiscard]] bool is_rank(const core::EnvironmentMap& variables);

/// How the ranks for these settings are started on this machine: all of the options but the
/// command.
///
/// --ranks and --device-ids become the number of ranks and CUDA_VISIBLE_DEVICES; --backend,
/// --timeout and --threads become the variables that World and OpenMP read. Errors: those of
/// launch::rank_count(); unsupported for a device that this machine does not show.
[[nodiscard]] launch::LaunchOptions rank_options(const Request& request,
                                                 const launch::MachineResources& machine,
                                                 const core::EnvironmentMap& variables);

}  // namespace yoke::start
