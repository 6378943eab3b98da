#pragma once

#include <functional>
#include <optional>

#include "yoke/launch/rank_count.hpp"
#include "yoke/launch/supervise.hpp"

namespace yoke::launch {

struct SelfOptions {
  std::optional<int>
      ranks{};  ///< the program's own wish; YOKE_RANKS wins; absent: one per visible GPU, else 1
  std::function<MachineResources()> machine = machine_resources;
  LaunchOptions launch{};  ///< command, program, ranks, listen and zero_is_done are filled in
};

/// Runs this program once per rank: starts /proc/self/exe with the same arguments and returns the
/// exit code for `main` when all are gone. Returns nothing where the caller is to go on itself: in
/// a rank of any launcher, or with one rank.
///
///   if (const auto exit_code = launch::run_self(argc, argv)) return *exit_code;
///
/// Says, in a rank of another launcher, which GPUs stay unused.
/// Starts no CUDA and no thread.
/// Errors: as supervise() and rank_count(); invalid_argument from rank_facts() and
///   unsupported where a Slurm task or a pod, one of several, sees more
///   GPUs than it was given ranks.
[[nodiscard]] std::optional<int> run_self(int argc, char** argv, SelfOptions options = {});

}  // namespace yoke::launch
