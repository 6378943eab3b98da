#pragma once

#include "signal_relay.hpp"
#include "yoke/launch/supervise.hpp"

namespace yoke::launch {

// What stays the same when the ranks are started again.
struct AttemptPlan {
  const LaunchOptions& options;
  SignalRelay& signals;
  const std::string& program;
  const core::EnvironmentMap& variables;  // the ranks', before each one's own
  std::string job_id{};
  int number = 0;  // restarts so far
  int ranks = 1;
  core::EnvironmentMap extra{};
};

// Starts the ranks once, and returns when nothing of them is left. Says what happens meanwhile, but
// not how it ended.
[[nodiscard]] Outcome run_attempt(const AttemptPlan& plan);

}  // namespace yoke::launch
