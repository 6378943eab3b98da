#pragma once

#include <filesystem>
#include <string>

#include "yoke/core/environment.hpp"

namespace yoke::launch {

// What all ranks of one job share.
struct JobFacts {
  std::string id{};
  int ranks = 1;
  int port = 0;
  int store_descriptor = -1;
  std::filesystem::path scratch_folder{};  // rank r's error file is r/error.json in it
  std::filesystem::path telemetry_root{};
};

// Where rank `rank` leaves its error.
[[nodiscard]] std::filesystem::path error_file(const JobFacts& job, int rank);

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
