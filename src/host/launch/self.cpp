#include "yoke/launch/self.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "yoke/core/console.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::launch {
namespace {

using core::text;

constexpr const char* kSelf = "/proc/self/exe";

/// The program's path, so that `ps` and debuggers name it; /proc's own link if the file was
/// replaced meanwhile.
std::string own_program() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink(kSelf, error);
  struct stat named{};
  struct stat running{};
  const bool same = !error && ::stat(path.c_str(), &named) == 0 && ::stat(kSelf, &running) == 0 &&
                    named.st_dev == running.st_dev && named.st_ino == running.st_ino;
  return same ? path.string() : kSelf;
}

RankCount wanted_ranks(const SelfOptions& options, const core::EnvironmentMap& variables) {
  const std::string asked = core::value_or(variables, "YOKE_RANKS");
  if (!asked.empty()) return rank_count(asked, "YOKE_RANKS", options.machine());
  if (options.ranks) return rank_count(std::to_string(*options.ranks), "ranks", options.machine());
  return rank_count({}, "ranks", options.machine());
}

/// A launcher that started one process for a machine of several GPUs meant a machine, not a GPU.
void check_gpus(const core::RankFacts& facts, const core::EnvironmentMap& variables,
                const MachineResources& machine) {
  const int unused = machine.gpus - facts.local_world_size;
  if (unused <= 0 || !core::value_or(variables, "YOKE_RANKS").empty()) return;
  const bool one_each = facts.local_world_size == 1 && facts.node_count == facts.world_size;
  if (one_each && (facts.launcher == "slurm" || facts.counts_nodes)) {
    throw Error(
        Code::unsupported,
        text("rank ", facts.rank, ": ", facts.launcher,
             " started 1 process on this machine, which has ", machine.gpus, " visible GPUs"),
        facts.launcher == "slurm"
            ? text("give srun --ntasks-per-node=", machine.gpus,
                   ", or set YOKE_RANKS=1 to use one GPU of each machine")
            : text("start torchrun --nproc-per-node=", machine.gpus,
                   " in the pods, or set YOKE_RANKS=1 to use one GPU of each"));
  }
  if (facts.local_rank == 0) {
    core::say(core::Level::info, text(unused, " of ", machine.gpus, " visible GPUs stay unused: ",
                                      facts.launcher, " started ", facts.local_world_size,
                                      facts.local_world_size == 1 ? " rank" : " ranks", " here"));
  }
}

/// What another launcher may have got wrong, said before the ranks wait for one another.
void check_placement(const core::RankFacts& facts, const core::EnvironmentMap& variables,
                     const SelfOptions& options) {
  if (facts.launcher == "yoke") return;  // it has looked itself
  check_gpus(facts, variables, options.machine());
  if (facts.rank == 0 && !facts.notice.empty()) core::say(core::Level::info, facts.notice);
}

}  // namespace

std::optional<int> run_self(int argc, char** argv, SelfOptions options) {
  const core::EnvironmentMap variables = core::environment();
  const core::RankFacts facts = core::rank_facts(variables);
  // A launcher that started one process for the whole job (a single Slurm task, one pod) left the
  // sharing to us.
  const bool placed = facts.launcher != "none" && facts.world_size > 1;
  if (placed || facts.launcher == "yoke" || facts.launcher == "torchrun") {
    check_placement(facts, variables, options);
    return std::nullopt;
  }
  if (!facts.notice.empty()) core::say(core::Level::info, facts.notice);
  const RankCount count = wanted_ranks(options, variables);
  if (!count.notice.empty()) core::say(core::Level::info, count.notice);
  if (const std::string restarts = core::value_or(variables, "YOKE_MAX_RESTARTS");
      !restarts.empty()) {
    const auto limit = core::parse_integer(restarts);
    if (!limit || *limit < 0 || *limit > 1'000'000)
      throw Error(Code::invalid_argument,
                  text("YOKE_MAX_RESTARTS '", restarts, "' is not a number from 0"),
                  "unset it, or give 0 or more");
    options.launch.restart.limit = static_cast<int>(*limit);
  }
  if (count.ranks == 1 && options.launch.restart.limit == 0) return std::nullopt;
  options.launch.command.assign(argv, argv + argc);
  options.launch.program = own_program();
  options.launch.ranks = count.ranks;
  options.launch.listen = true;
  options.launch.zero_is_done = true;
  return supervise(options.launch).exit_code;
}

}  // namespace yoke::launch
