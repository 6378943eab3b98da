#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rank_environment.hpp"
#include "yoke/launch/failure.hpp"

namespace yoke::launch {

// How one rank's process ended.
struct RankEnd {
  bool ended = false;
  int exit_code = 0;
  int signal = 0;
  std::int64_t time_ns = 0;  // CLOCK_REALTIME
  bool stopped = false;      // after the launcher had told it to end
};

// What the launcher saw of a job from its start on.
struct JobRecord {
  std::vector<RankEnd> ranks{};
  std::vector<int> passed_on{};     // signals, in order
  std::vector<Failure> failures{};  // of the launcher's own knowledge: no start, no time left
  std::int64_t start_ns = 0;        // CLOCK_REALTIME
  std::string host{};
  bool zero_is_done = false;  // LaunchOptions has its meaning

  [[nodiscard]] double seconds_at(std::int64_t time_ns) const;

  // The last signal passed on that asks to end; 0 for none.
  [[nodiscard]] int end_signal() const;
};

// How a rank that has ended failed; nothing if it ended well, was stopped, or obeyed a signal.
[[nodiscard]] std::optional<Failure> failure_of(const JobRecord& record, const JobFacts& job,
                                                int rank);

// What it comes to when all ranks are gone.
[[nodiscard]] Outcome conclude(const JobRecord& record, const JobFacts& job);

}  // namespace yoke::launch
