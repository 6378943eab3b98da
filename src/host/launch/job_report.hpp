#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "rank_environment.hpp"
#include "yoke/launch/failure.hpp"

namespace yoke::launch {

// Adds to each failure where its rank's telemetry says that it stood.
void add_last_steps(Outcome& outcome, const JobFacts& job);

// The furthest step that the ranks' telemetry shows.
void add_furthest_step(Outcome& outcome, const JobFacts& job);

// Writes the outcome, if it is a failure, to each of the paths that is not empty, and says so.
void write_failure_files(const Outcome& outcome, const std::string& job_id,
                         const std::vector<std::filesystem::path>& paths);

// Says how the job ended; the cause comes last, where people look.
void tell(const Outcome& outcome, int world_size);

}  // namespace yoke::launch
