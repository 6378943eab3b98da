#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "yoke/core/environment.hpp"
#include "yoke/launch/failure.hpp"

namespace yoke::launch {

struct LaunchOptions {
  std::vector<std::string> command{};  ///< the program (looked for in PATH) and its arguments
  std::string program{};               ///< the file to run, if it is not what command[0] names
  int ranks{1};
  std::optional<int>
      port{};            ///< where the ranks meet, on the loopback address; a free one if absent
  std::string job_id{};  ///< made up if empty
  std::chrono::milliseconds grace{5'000};          ///< after a failure: from SIGTERM to SIGKILL
  std::chrono::milliseconds signal_grace{30'000};  ///< after a signal was passed on: time to save
  std::optional<std::chrono::milliseconds> max_time{};  ///< for the whole job
  bool listen{
      false};  ///< the program takes YOKE_STORE_FD (yoke::run does): listen before it starts
  bool zero_is_done{false};  ///< the program exits with 128+n where signal n stopped it (Yoke's
                             ///< do), so 0 after a signal means that it had finished
  bool prefix{false};        ///< put "[r1] " before each line that rank 1 prints, through a pipe
  std::filesystem::path failure_file{};  ///< beside what YOKE_FAILURE_FILE names; none if empty
  core::EnvironmentMap extra{};          ///< set for the ranks on top of the caller's variables
};

/// Starts one process per rank on this machine, watches them, and returns when nothing of them is
/// left.
///
///   const Outcome outcome = supervise({.command = {"./train", "--lr", "0.1"}, .ranks = 4});
///
/// The ranks get every variable that torchrun sets, YOKE_START_TIME, and their parent's standard
/// streams. SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to all of them
/// while it runs, unless the caller's process ignores them; a second SIGINT kills.
/// Ranks: a process between the caller and the ranks (the guardian) ends all that they started,
///   grandchildren in other sessions too, when the caller dies in any way.
/// Exit code: docs/launch.md; 0 if all ranks ended with 0.
/// Threads: one call in a process at a time; started before other threads, since it forks.
/// Errors: invalid_argument (no command, ranks below 1, GLOO_SOCKET_IFNAME), not_found for the
///   program, io (the port is taken; the system starts no process). How the ranks end is no error
///   but the outcome, and is said on the console, the cause last.
/// Cost: a fork, and an exec per rank; no thread, no polling.
[[nodiscard]] Outcome supervise(const LaunchOptions& options);

}  // namespace yoke::launch
