#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "yoke/core/clock.hpp"
#include "yoke/core/environment.hpp"

namespace yoke::core {

/// Where a step's time goes, in the order of the record's arrays.
enum class StepPhase : std::uint32_t { input, forward, backward, communication, optimizer };
inline constexpr std::size_t kStepPhases = 5;

/// What ranks do together. The numbers are part of the file format.
enum class CollectiveKind : std::uint32_t {
  none,
  all_reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  send,
  receive,
  barrier,
};
[[nodiscard]] std::string_view name(CollectiveKind kind) noexcept;

/// Which rank of which job writes. Texts longer than 63 bytes are cut.
struct TelemetryIdentity {
  std::string job = "local";
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  std::string host{};
  std::string card_uuid{};  ///< empty on a CPU
  std::string program{};
};

struct StepFacts {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;         ///< counted over the whole run
  std::uint64_t samples = 0;      ///< of this rank in this step
  std::uint64_t sample_hash = 0;  ///< over the ids of these samples; 0: not known
  std::array<std::chrono::nanoseconds, kStepPhases> phases{};  ///< communication: the exposed part
};

struct CollectiveFacts {
  CollectiveKind kind = CollectiveKind::none;
  std::uint64_t sequence = 0;  ///< equal on all ranks of the group
  std::uint32_t group = 0;     ///< 0: the world
  std::uint32_t dtype = 0;     ///< number of c10::ScalarType
  std::uint64_t bytes = 0;
  int peer = -1;  ///< root, or the other end; -1: all
};

/// The folder that holds the jobs' folders: $YOKE_TELEMETRY_DIR, else /dev/shm/yoke-<uid>.
[[nodiscard]] std::filesystem::path telemetry_root(const EnvironmentMap& variables);

/// The file of one rank: root/<job>/<rank>. What cannot stand in a file name becomes '_'.
[[nodiscard]] std::filesystem::path telemetry_file(const std::filesystem::path& root,
                                                   std::string_view job, int rank);

/// Tells the monitor and the launcher what this rank does, through a small mapped file that they
/// read whenever they like (docs/telemetry.md has its layout).
///
///   TelemetryWriter telemetry(telemetry_root(environment()), {.job = "7f3a", .rank = 3,
///   .world_size = 8}); const auto ticket = telemetry.collective_began({.kind =
///   CollectiveKind::all_reduce, .bytes = n}); telemetry.collective_ended(ticket);
///   telemetry.step_ended({.step = 12, .samples = 64});
///
/// Owns: its file. A normal end removes it; after failed(), and when the process is killed, it
/// stays. Borrows the clock. Not for use in a child after fork(). Threads: any. Errors: never
/// throws. Where no file can be made (no space, no permission, a live rank has it) one warning
///   says so and the calls do nothing.
/// Cost: well under 1 us a call (one lock, some 8-byte stores); 4 KiB of shared memory.
class TelemetryWriter {
 public:
  TelemetryWriter(const std::filesystem::path& root, const TelemetryIdentity& identity,
                  const Clock& clock = SystemClock::instance()) noexcept;
  ~TelemetryWriter();
  TelemetryWriter(const TelemetryWriter&) = delete;
  TelemetryWriter& operator=(const TelemetryWriter&) = delete;

  [[nodiscard]] bool active() const noexcept { return state_ != nullptr; }

  void step_ended(const StepFacts& facts) noexcept;

  /// This rank has come to a collective. The ticket goes to collective_ended().
  [[nodiscard]] std::uint64_t collective_began(const CollectiveFacts& facts) noexcept;
  void collective_ended(std::uint64_t ticket) noexcept;

  /// Batches that are ready and not yet taken.
  void queue_depth(std::int64_t batches) noexcept;

  void loss(double value) noexcept;

  /// Keeps the text of an error; the file then outlives this object.
  void failed(std::string_view error) noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace yoke::core
