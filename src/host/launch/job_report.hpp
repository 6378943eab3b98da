#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "rank_environment.hpp"
#include "yoke/launch/failure.hpp"

namespace yoke::launch {

// Adds to each failure where its rank's telemetry says that it stood.
void add_last_steps(Outcome& outcome, const JobFacts& job);

// Writes the outcome, if it is a failure, to each of the paths that is not empty, and says so.
void write_failure_files(const Outcome& outcome, const JobFacts& job,
                         const std::vector<std::filesystem::path>& paths);

// Says how the job ended; the cause comes last, where people look.
void tell(const Outcome& outcome, const JobFacts& job);

}  // namespace yoke::launch
