#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "yoke/launch/failure.hpp"

namespace yoke::launch {

struct RestartOptions {
  int limit{0};  ///< how often all ranks are started again after a failure
  /// Count only the restarts within this time; absent: all of the job. With it a job that fails
  /// once a day never ends, and one that fails in a loop does.
  std::optional<std::chrono::milliseconds> window{};
  int without_progress{3};  ///< end (exit code 4) after so many attempts in a row that came no
                            ///< further than one before; 0: never
};

/// Decides whether a job that failed is started again.
///
///   RestartPolicy policy({.limit = 3});
///   while (policy.after(outcome, now).again) outcome = start_all();
///
/// A job is not started again after a stop by a signal, after exit codes 2, 3 and 4 (which say that
/// it would end so again), after its time limit, without restarts left, and without progress: the
/// furthest step of the ranks' telemetry has not grown, or the same rank failed with the same
/// words.
class RestartPolicy {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Decision {
    bool again{false};
    int exit_code{0};   ///< of the job if it ends here
    std::string why{};  ///< one line to say; empty if there is nothing to add
  };

  explicit RestartPolicy(const RestartOptions& options) : options_(options) {}

  [[nodiscard]] Decision after(const Outcome& outcome, Time now);

 private:
  [[nodiscard]] bool came_further(const Outcome& outcome);

  RestartOptions options_;
  std::deque<Time> restarts_;
  std::optional<std::uint64_t> furthest_;
  std::optional<Failure> last_;
  int stuck_ = 0;  // attempts in a row without progress
};

}  // namespace yoke::launch
