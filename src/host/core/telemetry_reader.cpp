#include "yoke/core/telemetry_reader.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <tuple>
#include <utility>

#include "process_identity.hpp"
#include "telemetry_record.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"

namespace yoke::core {
namespace {

namespace fs = std::filesystem;
using std::chrono::nanoseconds;

constexpr int kTries =
    100;  // a change takes some tens of nanoseconds, so the second try nearly always succeeds

std::uint64_t sequence_of(int descriptor) {
  std::uint64_t sequence = 1;  // a file that was cut short reads as one in change
  const ssize_t count =
      ::pread(descriptor, &sequence, sizeof sequence, offsetof(TelemetryRecord, sequence));
  return count == sizeof sequence ? sequence : 1;
}

/// One attempt of Note [Telemetry seqlock]. Reads with pread, not from a mapping: a file that
/// somebody cuts short then gives a short read and not a SIGBUS. The fences order the copies of the
/// kernel on weakly ordered processors.
std::pair<bool, ssize_t> copy_record(int descriptor, TelemetryRecord& record) {
  const std::uint64_t before = sequence_of(descriptor);
  std::atomic_thread_fence(std::memory_order_acquire);
  const ssize_t count = ::pread(descriptor, &record, sizeof record, 0);
  std::atomic_thread_fence(std::memory_order_acquire);
  const std::uint64_t after = sequence_of(descriptor);
  return {before == after && before % 2 == 0, count};
}

Clock::Monotonic time_of(std::int64_t ns) {
  return Clock::Monotonic(std::chrono::duration_cast<Clock::Monotonic::duration>(nanoseconds(ns)));
}

std::optional<Clock::Monotonic> time_if(std::int64_t ns) {
  if (ns == 0) return std::nullopt;
  return time_of(ns);
}

template <std::size_t size>
std::string text_of(const std::array<char, size>& field) {
  return {field.begin(), std::find(field.begin(), field.end(), '\0')};
}

std::array<nanoseconds, kStepPhases> phases_of(
    const std::array<std::uint64_t, kStepPhases>& phases) {
  std::array<nanoseconds, kStepPhases> out{};
  std::transform(phases.begin(), phases.end(), out.begin(),
                 [](std::uint64_t ns) { return nanoseconds(ns); });
  return out;
}

WriterLife life_of(const TelemetryRecord& record) {
  const ProcessIdentity self = own_identity();
  const bool same_namespace = record.pid_namespace == self.pid_namespace;
  const bool reader_on_host = self.host_pid != 0 && record.host_pid != 0;
  if (!same_namespace && !reader_on_host) return WriterLife::unknown;
  const std::uint64_t pid = same_namespace ? record.pid : record.host_pid;
  const ProcessId writer{.pid = static_cast<pid_t>(pid), .start_time = record.start_time};
  return is_alive(writer) ? WriterLife::alive : WriterLife::dead;
}

std::vector<CollectiveSample> collectives_of(const TelemetryRecord& record) {
  std::vector<CollectiveSample> out;
  const std::uint64_t end = record.collectives_begun;
  for (std::uint64_t ticket = end - std::min<std::uint64_t>(end, kTelemetryRing); ticket < end;
       ++ticket) {
    const CollectiveRecord& place = record.collectives[ticket % kTelemetryRing];
    out.push_back({.facts = {.kind = static_cast<CollectiveKind>(place.kind),
                             .sequence = place.sequence,
                             .group = place.group,
                             .dtype = place.dtype,
                             .bytes = place.bytes,
                             .peer = place.peer},
                   .began = time_of(place.began_ns),
                   .ended = time_if(place.ended_ns)});
  }
  return out;
}

TelemetryIdentity identity_of(const TelemetryRecord& record) {
  return {.job = text_of(record.job),
          .rank = record.rank,
          .world_size = record.world_size,
          .local_rank = record.local_rank,
          .local_world_size = record.local_world_size,
          .host = text_of(record.host),
          .card_uuid = text_of(record.card_uuid),
          .program = text_of(record.program)};
}

TelemetryProcess process_of(const TelemetryRecord& record) {
  const auto started =
      std::chrono::duration_cast<Clock::Wall::duration>(nanoseconds(record.started_wall_ns));
  return {.pid = record.pid,
          .host_pid = record.host_pid,
          .pid_namespace = record.pid_namespace,
          .start_time = record.start_time,
          .started = Clock::Wall(started)};
}

TelemetrySnapshot snapshot_of(const TelemetryRecord& record, bool consistent) {
  TelemetrySnapshot out;
  out.identity = identity_of(record);
  out.process = process_of(record);
  out.writer = life_of(record);
  out.consistent = consistent;
  out.updated = time_of(record.updated_ns);
  out.last_step = {.epoch = record.epoch,
                   .step = record.step,
                   .samples = record.step_samples,
                   .sample_hash = record.sample_hash,
                   .phases = phases_of(record.last_phase_ns)};
  out.step_ended = time_if(record.step_ended_ns);
  out.total_samples = record.total_samples;
  out.total_phases = phases_of(record.total_phase_ns);
  if (record.has_loss != 0) out.loss = record.loss;
  if (record.queue_depth >= 0) out.queue_depth = record.queue_depth;
  out.collectives_begun = record.collectives_begun;
  out.collectives = collectives_of(record);
  out.error = text_of(record.error);
  out.error_at = time_if(record.error_ns);
  return out;
}

void require_record(const TelemetryRecord& record, ssize_t count, const fs::path& file) {
  constexpr ssize_t kHead = offsetof(TelemetryRecord, sequence);
  if (count < kHead || record.magic != kTelemetryMagic) {
    throw Error(Code::corrupt_data,
                text("read telemetry ", file.string(), ": this is no telemetry record"));
  }
  if (record.version != kTelemetryVersion) {
    throw Error(Code::unsupported,
                text("read telemetry ", file.string(), ": version ", record.version,
                     ", this program knows ", kTelemetryVersion),
                "use the yoke that started the job");
  }
  if (count < static_cast<ssize_t>(sizeof record) || record.size != sizeof record) {
    throw Error(Code::corrupt_data,
                text("read telemetry ", file.string(), ": ", count, " bytes of ", sizeof record));
  }
}

}  // namespace

std::string_view name(CollectiveKind kind) noexcept {
  switch (kind) {
    case CollectiveKind::none: return "none";
    case CollectiveKind::all_reduce: return "all-reduce";
    case CollectiveKind::broadcast: return "broadcast";
    case CollectiveKind::all_gather: return "all-gather";
    case CollectiveKind::reduce_scatter: return "reduce-scatter";
    case CollectiveKind::all_to_all: return "all-to-all";
    case CollectiveKind::send: return "send";
    case CollectiveKind::receive: return "receive";
    case CollectiveKind::barrier: return "barrier";
  }
  return "unknown";  // a number that a damaged file holds
}

TelemetryReader::TelemetryReader(fs::path file)
    : file_(std::move(file)),
      descriptor_(::open(file_.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)) {
  if (descriptor_ >= 0) return;
  const int error = errno;
  throw Error(
      error == ENOENT ? Code::not_found : Code::io,
      text("open telemetry ", file_.string(), ": ", std::generic_category().message(error)));
}

TelemetryReader::~TelemetryReader() { ::close(descriptor_); }

TelemetrySnapshot TelemetryReader::read() const {
  TelemetryRecord record{};
  bool consistent = false;
  ssize_t count = 0;
  for (int attempt = 0; attempt < kTries && !consistent; ++attempt) {
    if (attempt > 0) ::sched_yield();
    std::tie(consistent, count) = copy_record(descriptor_, record);
  }
  require_record(record, count, file_);
  return snapshot_of(record, consistent);
}

std::vector<fs::path> telemetry_files(const fs::path& root) {
  std::vector<std::tuple<std::string, std::int64_t, fs::path>> found;
  std::error_code error;
  for (const auto& job : fs::directory_iterator(root, error)) {
    for (const auto& file : fs::directory_iterator(job.path(), error)) {
      const auto rank = parse_integer(file.path().filename().string());
      if (rank && *rank >= 0)
        found.emplace_back(job.path().filename().string(), *rank, file.path());
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<fs::path> files;
  for (auto& [job, rank, path] : found) files.push_back(std::move(path));
  return files;
}

namespace {

/// Removes the file if its writer is dead and `is_due` agrees. What has gone meanwhile, or is no
/// record, is left alone.
template <class IsDue>
bool remove_if_dead(const fs::path& file, const IsDue& is_due) {
  try {
    const TelemetrySnapshot seen = TelemetryReader(file).read();
    if (seen.writer != WriterLife::dead || !is_due(seen)) return false;
    std::error_code error;
    const bool removed = fs::remove(file, error);
    ::rmdir(file.parent_path().c_str());  // stays while another file is in it
    return removed;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::size_t remove_dead_telemetry(const fs::path& root, std::string_view job) {
  const fs::path folder = telemetry_file(root, job, 0).parent_path();
  std::size_t removed = 0;
  for (const fs::path& file : telemetry_files(root)) {
    if (file.parent_path() != folder) continue;
    if (remove_if_dead(file, [](const TelemetrySnapshot&) { return true; })) ++removed;
  }
  ::rmdir(folder.c_str());
  return removed;
}

void remove_old_telemetry(const fs::path& root, nanoseconds age, const Clock& clock) {
  const auto is_old = [&](const TelemetrySnapshot& seen) {
    const auto since = clock.now() - seen.updated;
    return since > age || since < nanoseconds(0);  // from before the machine's last start
  };
  for (const fs::path& file : telemetry_files(root)) remove_if_dead(file, is_old);
}

}  // namespace yoke::core
