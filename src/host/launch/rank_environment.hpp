#pragma once

#include <filesystem>
#include <string>

#include "yoke/core/environment.hpp"
#include "yoke/launch/placement.hpp"

namespace yoke::launch {

// What this machine's ranks of one job share in one attempt. Ranks are counted from 0 on this
// machine (local) except where "global" stands.
struct JobFacts {
  std::string id{};
  int ranks = 1;
  int port = 0;
  int store_descriptor = -1;
  std::filesystem::path scratch_folder{};  // rank r's error file is r/error.json in it
  std::filesystem::path telemetry_root{};
  std::string host{};
  std::string role = "default";
  int max_restarts = 0;
  bool python = false;  // the program is run by a Python
  Placement placement{};

  [[nodiscard]] int world_size() const {
    return placement.world_size > 0 ? placement.world_size : ranks;
  }
  [[nodiscard]] int global(int local_rank) const { return placement.first_rank + local_rank; }
};

// Where rank `rank` leaves its error, and where a Python rank writes its stack when it is asked.
[[nodiscard]] std::filesystem::path error_file(const JobFacts& job, int rank);
[[nodiscard]] std::filesystem::path stack_file(const JobFacts& job, int rank);

// The variables of one rank: `base` (the caller's), then every one that torchrun sets, then
// `extra`.
[[nodiscard]] core::EnvironmentMap rank_environment(core::EnvironmentMap base,
                                                    const core::EnvironmentMap& extra,
                                                    const JobFacts& job, int rank);

// Threads for each of `ranks` on `cores`: an equal share, at least 1.
[[nodiscard]] int threads_per_rank(int cores, int ranks);

// Sets OMP_NUM_THREADS to the rank's share where several ranks run and the user set none, and
// returns the line that says so; an empty line otherwise.
[[nodiscard]] std::string share_threads(core::EnvironmentMap& base, int ranks, int cores);

}  // namespace yoke::launch
