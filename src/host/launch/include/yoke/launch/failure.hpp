#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "yoke/core/environment.hpp"
#include "yoke/core/json.hpp"

namespace yoke::launch {

/// How one rank failed.
struct Failure {
  int rank{-1};  ///< -1: the launcher itself (its time limit, its guardian)
  std::string host{};
  int exit_code{0};       ///< of the rank's process; 0 if a signal ended it
  int signal{0};          ///< that ended it; 0 if it exited
  std::string code{};     ///< name of a core::Code, or what another program wrote; may be empty
  std::string message{};  ///< the rank's own words; empty if it left none
  std::string hint{};
  double seconds{0.0};      ///< from the start of the ranks to the error
  std::int64_t time_ns{0};  ///< since 1970, when the rank wrote its words; 0: it did not say
  std::string last_step{};  ///< where its telemetry stood: "after step 12, in all-reduce #3 (1.0
                            ///< MiB)"; empty if it wrote none
};

/// How a job ended.
struct Outcome {
  int exit_code{0};
  std::optional<Failure> root_cause{};
  std::vector<Failure>
      follow_ups{};            ///< failed because of the root cause, or after it; in order of time
  std::vector<int> stopped{};  ///< ranks that the launcher ended
  std::optional<std::uint64_t> furthest_step{};  ///< that a rank's telemetry shows as ended
  std::vector<Failure> earlier{};  ///< what ended the attempts before this one, in order
};

/// Splits failures into the first cause and what followed from it.
///
/// The cause is the earliest, except that a rank which only lost contact (code peer_lost or
/// timeout, or words such as "connection closed") gives way to the earliest rank with a reason of
/// its own within 5 s after it: a rank that dies closes its sockets before it has written why.
void choose_root_cause(std::vector<Failure> failures, Outcome& outcome);

/// "rank 1 (host n7): bad label 11 in sample 42 / look at sample 42": one line, the rank's own
/// words where it left any, else how its process ended.
[[nodiscard]] std::string describe(const Failure& failure);

/// In a rank: leaves the error for the launcher, in torchrun's form with Yoke's fields beside it,
/// where TORCHELASTIC_ERROR_FILE says. The first error stays. Without a launcher writes
/// `YOKE_FAILURE_FILE`, if that is set. Never throws: it is called while another error is handled.
void report_failure(const std::exception& error, const core::EnvironmentMap& variables) noexcept;

/// Reads what a rank left in its error file: Yoke's form or that of Python's `@record`. Fills code,
/// message and hint; nothing if there is no file or no word in it.
[[nodiscard]] std::optional<Failure> read_error_file(const std::filesystem::path& path);

/// A failure as it stands in failure.json, and back; what is missing keeps its default.
[[nodiscard]] core::Json to_json(const Failure& failure);
[[nodiscard]] Failure failure_from_json(const core::Json& object);

/// Writes `failure.json` (docs/launch.md has the format). Errors: io.
void write_failure_file(const std::filesystem::path& path, const Outcome& outcome,
                        const std::string& job_id);

}  // namespace yoke::launch
