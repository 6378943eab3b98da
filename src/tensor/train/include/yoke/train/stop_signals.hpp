#pragma once

#include <csignal>
#include <string>
#include <utility>
#include <vector>

namespace yoke::train {

/// Notes the first signal that asks the process to stop, for TrainerOptions::stop_signal, while it
/// lives. The second of them acts as it did before: whoever does not want to wait ends the process.
///
///   const StopSignals stop({"TERM", "INT", "USR1"});
///   options.stop_signal = StopSignals::told;
///
/// Requires: one at a time in a process. A signal that is ignored (nohup and HUP) stays ignored.
/// Errors: invalid_argument for a name that is none of HUP, INT, QUIT, TERM, USR1, USR2.
class StopSignals {
 public:
  explicit StopSignals(const std::vector<std::string>& names);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The first one that came, 0 before.
  [[nodiscard]] static int told() noexcept;

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace yoke::train
