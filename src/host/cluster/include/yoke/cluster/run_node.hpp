#pragma once

#include <string>

#include "yoke/cluster/nodes.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/launch/supervise.hpp"

namespace yoke::cluster {

struct RunNodeOptions {
  launch::LaunchOptions launch{};  ///< of this machine's ranks
  NodeOptions nodes{};
  std::string coordinator_program{};  ///< libexec/yoke/yoke-coordinator, for the first machine
};

/// One machine's part of a job of several: joins the others at the coordinator, which the first
/// machine starts, runs this machine's ranks from attempt to attempt, and returns the exit code,
/// which is the same on all machines.
///
/// Says what this machine is in the job, and at the end the first cause of all machines.
/// Threads, signals: as launch::supervise().
/// Errors: invalid_argument for what the coordinator refuses, timeout where it cannot be reached,
///   not_found for its name, those of find_secret(), choose_interface() and supervise().
[[nodiscard]] int run_node(const RunNodeOptions& options, const core::EnvironmentMap& variables);

}  // namespace yoke::cluster
