#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "yoke/core/clock.hpp"
#include "yoke/core/telemetry_reader.hpp"

namespace yoke::launch {

/// What can be seen of one rank from outside.
struct RankView {
  int rank{0};
  std::string host{};
  bool ended{false};
  char state{'R'};  ///< of its process, as /proc has it: T is stopped, D hangs in the kernel
  std::optional<core::TelemetrySnapshot> telemetry{};  ///< absent: the program writes none
};

/// A rank that others wait for, and what is known of it.
struct HangReport {
  std::string text{};           ///< one line: who did not come to what, and who waits
  std::vector<int> suspects{};  ///< ranks whose stacks tell more
};

/// Compares what the ranks of a job say of their collectives and finds who holds up the others.
///
///   HangWatch watch({.limit = 20s});
///   for (const HangReport& report : watch.look(views, clock.now())) say(report.text);
///
/// Reported: a collective in which some ranks wait longer than `limit` while others have not come;
/// one in which all wait; ranks that are in collectives of one number and of different kinds or
/// sizes (after `mismatch_after`, whoever waits); a stopped process. Each once.
/// Sees: ranks that write telemetry (Yoke's programs, and scripts with yoke_telemetry.py), and of
///   others only whether their process is stopped.
/// Cost: none but what it is given; no clock of its own.
class HangWatch {
 public:
  struct Options {
    std::chrono::milliseconds limit{20'000};
    std::chrono::milliseconds mismatch_after{2'000};
    std::chrono::milliseconds stopped_after{5'000};
  };

  explicit HangWatch(const Options& options) : options_(options) {}

  [[nodiscard]] std::vector<HangReport> look(const std::vector<RankView>& ranks,
                                             core::Clock::Monotonic now);

 private:
  struct Waiting;

  void look_at_group(const std::vector<RankView>& ranks, std::uint32_t group,
                     core::Clock::Monotonic now, std::vector<HangReport>& out);
  void look_at_process(const RankView& rank, core::Clock::Monotonic now,
                       std::vector<HangReport>& out);
  [[nodiscard]] bool is_new(const std::string& key) { return said_.insert(key).second; }

  Options options_;
  std::set<std::string> said_;
  std::map<int, core::Clock::Monotonic> stopped_since_;
};

}  // namespace yoke::launch
