#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "yoke/core/environment.hpp"
#include "yoke/launch/companion.hpp"
#include "yoke/launch/failure.hpp"
#include "yoke/launch/hang_watch.hpp"
#include "yoke/launch/placement.hpp"
#include "yoke/launch/restart.hpp"
#include "yoke/launch/store_port.hpp"
#include "yoke/launch/streams.hpp"

namespace yoke::launch {

struct LaunchOptions {
  std::vector<std::string> command{};  ///< the program (looked for in PATH) and its arguments
  std::string program{};               ///< the file to run, if it is not what command[0] names
  int ranks{1};                        ///< of this machine
  int fewest_ranks{0};  ///< a rank that twice in a row was killed or lost its card is left out once
                        ///< if so many stay; 0: never
  std::optional<int>
      port{};            ///< where the ranks meet, on the loopback address; a free one if absent
  std::string job_id{};  ///< made up if empty
  std::string role{"default"};                     ///< torchrun's word, for ROLE_NAME
  std::chrono::milliseconds grace{8'000};          ///< after a failure: from SIGTERM to SIGKILL
  std::chrono::milliseconds signal_grace{30'000};  ///< after a signal was passed on: time to save
  std::optional<std::chrono::milliseconds> max_time{};  ///< for each attempt
  RestartOptions restart{};
  std::optional<HangWatch::Options> hang{HangWatch::Options{}};  ///< absent: nobody watches
  bool stop_on_hang{false};  ///< a reported hang is a failure of the first suspect
  bool listen{
      false};  ///< the program takes YOKE_STORE_FD (yoke::run does): listen before it starts
  bool zero_is_done{false};  ///< the program exits with 128+n where signal n stopped it (Yoke's
                             ///< do), so 0 after a signal means that it had finished
  bool python{false};        ///< a Python runs it: switch its fault handlers on
  OutputOptions output{};
  std::vector<std::vector<int>> cores{};  ///< for each rank, those it may run on; empty: any
  std::filesystem::path failure_file{};   ///< beside what YOKE_FAILURE_FILE names; none if empty
  core::EnvironmentMap extra{};           ///< set for the ranks on top of the caller's variables

  // For one of several machines; `restart` is then left to whoever speaks for all of them.
  Placement placement{};
  int max_restarts_told{-1};      ///< TORCHELASTIC_MAX_RESTARTS; -1: restart.limit
  Companion* companion{nullptr};  ///< borrowed
  StorePort* store{nullptr};      ///< bound already; borrowed. Absent: bound here
  bool quiet{false};              ///< leave it to the caller to say how it ended
};

/// Starts one process per rank on this machine, watches them, and returns when nothing of them is
/// left; after a failure starts all of them again as often as `restart` says.
///
///   const Outcome outcome = supervise({.command = {"./train", "--lr", "0.1"}, .ranks = 4});
///
/// The ranks get every variable that torchrun sets, YOKE_START_TIME, and their parent's standard
/// streams. SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to all of them
/// while it runs, unless the caller's process ignores them; a second SIGINT kills.
/// Ranks: a process between the caller and the ranks (the guardian) ends all that they started,
///   grandchildren in other sessions too, when the caller dies in any way.
/// Exit code: docs/launch.md; 0 if all ranks ended with 0.
/// Threads: one call in a process at a time; started before other threads, since it forks. Has one
///   of its own only while it takes the stack of a rank that hangs.
/// Errors: invalid_argument (no command, ranks below 1, GLOO_SOCKET_IFNAME), not_found for the
///   program, io (the port is taken; the system starts no process). How the ranks end is no error
///   but the outcome, and is said on the console, the cause last.
/// Cost: a fork, and an exec per rank; while it watches, a read of 4 KiB per rank and second.
[[nodiscard]] Outcome supervise(const LaunchOptions& options);

/// Says how a job ended, the cause last, and writes failure.json where `files` say.
void report_outcome(const Outcome& outcome, const std::string& job_id, int world_size,
                    const std::vector<std::filesystem::path>& files);

}  // namespace yoke::launch
