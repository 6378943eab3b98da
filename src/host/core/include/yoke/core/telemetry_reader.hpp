#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "yoke/core/clock.hpp"
#include "yoke/core/telemetry.hpp"

namespace yoke::core {

enum class WriterLife {
  alive,
  dead,     ///< ended without removing its file: failed or killed
  unknown,  ///< in another PID name space, where its number means nothing here
};

/// The process that wrote a record, as far as it could know.
struct TelemetryProcess {
  std::uint64_t pid = 0;            ///< in its own PID name space
  std::uint64_t host_pid = 0;       ///< on the host; 0: not known from inside a container
  std::uint64_t pid_namespace = 0;  ///< inode; 0: not known
  std::uint64_t start_time = 0;     ///< clock ticks since boot, as in /proc/<pid>/stat
  Clock::Wall started{};
};

struct CollectiveSample {
  CollectiveFacts facts;
  Clock::Monotonic began{};
  std::optional<Clock::Monotonic> ended;  ///< empty: this rank still waits in it
};

/// All that a rank said, at one moment.
struct TelemetrySnapshot {
  TelemetryIdentity identity;
  TelemetryProcess process;
  WriterLife writer = WriterLife::unknown;
  bool consistent = true;  ///< false: the writer stopped in the middle of a change
  Clock::Monotonic updated{};

  StepFacts last_step;  ///< samples: of the last step
  std::optional<Clock::Monotonic> step_ended;
  std::uint64_t total_samples = 0;
  std::array<std::chrono::nanoseconds, kStepPhases> total_phases{};
  std::optional<double> loss;
  std::optional<std::int64_t> queue_depth;

  std::uint64_t collectives_begun = 0;
  std::vector<CollectiveSample> collectives;  ///< the last 16 at most, oldest first

  std::string error;  ///< empty: none
  std::optional<Clock::Monotonic> error_at;
};

/// Reads one rank's record while the rank writes it.
///
///   for (const auto& file : telemetry_files(root)) show(TelemetryReader(file).read());
///
/// Errors: not_found and io at construction; from read(), corrupt_data for a file that is no
/// record, unsupported
///   for a record of another version.
/// Threads: any.
/// Cost: three small reads, a few microseconds; the writer never waits for it.
class TelemetryReader {
 public:
  explicit TelemetryReader(std::filesystem::path file);
  ~TelemetryReader();
  TelemetryReader(const TelemetryReader&) = delete;
  TelemetryReader& operator=(const TelemetryReader&) = delete;

  [[nodiscard]] TelemetrySnapshot read() const;

 private:
  std::filesystem::path file_;
  int descriptor_;
};

/// The records under `root`, by job and rank. Empty where there is no such folder.
[[nodiscard]] std::vector<std::filesystem::path> telemetry_files(const std::filesystem::path& root);

/// Removes the records of dead writers of one job, and its folder when that is then empty: what a
/// launcher does after it has read them. Returns how many it removed.
std::size_t remove_dead_telemetry(const std::filesystem::path& root, std::string_view job);

/// Removes the records of all jobs whose writer is dead and last spoke more than `age` ago, and
/// folders that are then empty. Each job's writer with local rank 0 does so with a day, since runs
/// without a launcher have nobody to do it.
void remove_old_telemetry(const std::filesystem::path& root, std::chrono::nanoseconds age,
                          const Clock& clock = SystemClock::instance());

}  // namespace yoke::core
