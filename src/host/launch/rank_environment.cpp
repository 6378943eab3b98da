#include "rank_environment.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "yoke/core/text.hpp"

namespace yoke::launch {

using core::text;

std::filesystem::path error_file(const JobFacts& job, int rank) {
  return job.scratch_folder / std::to_string(rank) / "error.json";
}

std::filesystem::path stack_file(const JobFacts& job, int rank) {
  return job.scratch_folder / std::to_string(rank) / "stack.txt";
}

core::EnvironmentMap rank_environment(core::EnvironmentMap base, const core::EnvironmentMap& extra,
                                      const JobFacts& job, int rank) {
  const Placement& place = job.placement;
  const std::string number = std::to_string(job.global(rank));
  const std::string ranks = std::to_string(job.world_size());
  core::EnvironmentMap set{
      {"RANK", number},
      {"LOCAL_RANK", std::to_string(rank)},
      {"ROLE_RANK", number},
      {"ROLE_NAME", job.role},
      {"WORLD_SIZE", ranks},
      {"LOCAL_WORLD_SIZE", std::to_string(job.ranks)},
      {"ROLE_WORLD_SIZE", ranks},
      {"GROUP_RANK", std::to_string(place.node_rank)},
      {"GROUP_WORLD_SIZE", std::to_string(place.node_count)},
      {"MASTER_ADDR", place.master_address},
      {"MASTER_PORT", std::to_string(job.port)},
      {"TORCHELASTIC_RUN_ID", job.id},
      {"TORCHELASTIC_RESTART_COUNT", std::to_string(place.attempt)},
      {"TORCHELASTIC_MAX_RESTARTS", std::to_string(job.max_restarts)},
      {"TORCHELASTIC_ERROR_FILE", error_file(job, rank).string()},
      {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"},
      {"YOKE_JOB_ID", job.id},
  };
  if (job.global(rank) == 0 && job.store_descriptor >= 0)
    set.emplace("YOKE_STORE_FD", std::to_string(job.store_descriptor));
  // Of an outer launcher: the first would send rank 0 to a store that nobody hosts, the second to a
  // file that is not ours. The secret is the launchers' alone.
  for (const char* stale :
       {"TORCHELASTIC_USE_AGENT_STORE", "YOKE_STORE_FD", "NODE_RANK", "YOKE_SECRET", "YOKE_SLOTS"})
    base.erase(stale);
  base.emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  if (job.python) {
    // So that a rank that hangs or crashes leaves its stack and its last collectives: Python's
    // faulthandler, and NCCL's flight recorder beside the error file.
    base.emplace("PYTHONFAULTHANDLER", "1");
    base.emplace("TORCH_NCCL_TRACE_BUFFER_SIZE", "2000");
    base.emplace("TORCH_NCCL_DUMP_ON_TIMEOUT", "1");
    base.emplace("YOKE_STACK_FILE", stack_file(job, rank).string());
  }
  // Gradients and activations are memory that malloc takes anew in every step: in pages of 2 MiB
  // that costs a hundredth of the page faults. glibc 2.35 and newer; others do not look at it.
  base.emplace("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
  for (const auto& part : {std::cref(set), std::cref(extra)}) {
    for (const auto& [name, value] : part.get()) base.insert_or_assign(name, value);
  }
  return base;
}

int threads_per_rank(int cores, int ranks) { return std::max(1, cores / std::max(1, ranks)); }

// "4", or "4,2" for nested regions. What OpenMP cannot read it leaves out, and takes every core.
static bool counts_threads(const std::string& value) {
  const auto threads = core::parse_integer(core::split(value, ',').front());
  return threads && *threads > 0;
}

std::string share_threads(core::EnvironmentMap& base, int ranks, int cores) {
  if (ranks < 2 || counts_threads(core::value_or(base, "OMP_NUM_THREADS"))) return {};
  const int threads = threads_per_rank(cores, ranks);
  base["OMP_NUM_THREADS"] = std::to_string(threads);
  return text("OMP_NUM_THREADS=", threads, " for each of ", ranks, " ranks (", cores,
              cores == 1 ? " core" : " cores", "); set it to choose otherwise");
}

}  // namespace yoke::launch
