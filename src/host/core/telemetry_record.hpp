#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace yoke::core {

// The telemetry file, version 1, little endian. docs/telemetry.md shows the offsets; a change of
// any of them is a new version.

inline constexpr std::array<char, 8> kTelemetryMagic{'Y', 'O', 'K', 'E', 'T', 'E', 'L', 'E'};
inline constexpr std::uint32_t kTelemetryVersion = 1;
inline constexpr std::size_t kTelemetryRing = 16;

struct CollectiveRecord {
  std::uint64_t sequence;
  std::int64_t began_ns;  // 0: this place was never used
  std::int64_t ended_ns;  // 0: not ended
  std::uint64_t bytes;
  std::uint32_t kind;
  std::uint32_t dtype;
  std::uint32_t group;
  std::int32_t peer;
  std::array<std::uint64_t, 2> reserved;
};

struct TelemetryRecord {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t size;
  std::uint64_t sequence;  // odd while the writer is in the middle of a change

  std::uint64_t pid;
  std::uint64_t host_pid;
  std::uint64_t pid_namespace;
  std::uint64_t start_time;
  std::int64_t started_wall_ns;
  std::int64_t started_ns;
  std::int64_t updated_ns;

  std::int32_t rank;
  std::int32_t world_size;
  std::int32_t local_rank;
  std::int32_t local_world_size;
  std::array<char, 64> job;
  std::array<char, 64> host;
  std::array<char, 64> card_uuid;
  std::array<char, 64> program;

  std::uint64_t epoch;
  std::uint64_t step;
  std::uint64_t step_samples;
  std::uint64_t sample_hash;
  std::array<std::uint64_t, 5> last_phase_ns;
  std::array<std::uint64_t, 5> total_phase_ns;
  std::uint64_t total_samples;
  std::int64_t step_ended_ns;  // 0: no step yet

  std::int64_t queue_depth;  // -1: not known
  double loss;               // NaN: not known, or really NaN
  std::uint64_t has_loss;

  std::uint64_t collectives_begun;
  std::int64_t error_ns;  // 0: no error
  std::array<std::uint64_t, 7> reserved_a;
  std::array<CollectiveRecord, kTelemetryRing> collectives;
  std::array<char, 1024> error;
  std::array<char, 1472> reserved_b;
};

static_assert(sizeof(CollectiveRecord) == 64);
static_assert(offsetof(TelemetryRecord, sequence) == 16);
static_assert(offsetof(TelemetryRecord, job) == 96);
static_assert(offsetof(TelemetryRecord, epoch) == 352);
static_assert(offsetof(TelemetryRecord, total_samples) == 464);
static_assert(offsetof(TelemetryRecord, collectives_begun) == 504);
static_assert(offsetof(TelemetryRecord, collectives) == 576);
static_assert(offsetof(TelemetryRecord, error) == 1600);
static_assert(sizeof(TelemetryRecord) == 4096);

}  // namespace yoke::core
