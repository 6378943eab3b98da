#include "yoke/core/telemetry.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>
#include <type_traits>

#include "process_identity.hpp"
#include "telemetry_record.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/telemetry_reader.hpp"
#include "yoke/core/text.hpp"

namespace yoke::core {
namespace {

namespace fs = std::filesystem;

std::string reason(int system_error) { return std::generic_category().message(system_error); }

std::int64_t nanoseconds_of(Clock::Monotonic time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

/// Copies as much as fits with a closing zero, and no half of a UTF-8 character.
template <std::size_t size>
void put_text(std::array<char, size>& field, std::string_view text) {
  std::size_t count = std::min(text.size(), size - 1);
  const auto continues = [&](std::size_t i) {
    return (static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U;
  };
  if (count < text.size()) {
    while (count > 0 && continues(count)) --count;
  }
  field.fill('\0');
  std::copy_n(text.begin(), count, field.begin());
}

void make_root(const fs::path& root) {
  std::error_code error;
  if (fs::is_directory(root, error)) return;
  if (!root.parent_path().empty()) fs::create_directories(root.parent_path(), error);
  make_private_folder(root);
}

void refuse_if_taken(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(file, error)) return;
  try {
    const TelemetrySnapshot before = TelemetryReader(file).read();
    if (before.writer != WriterLife::alive) return;
    throw Error(Code::io,
                text(file.string(), " belongs to process ", before.process.pid, ", which runs"),
                "give each job its own YOKE_JOB_ID");
  } catch (const Error& found) {
    if (found.code() == Code::io) throw;  // otherwise: no record of ours, to be replaced
  }
}

/// A file that readers see whole from its first moment: written under another name, then renamed.
class NewFile {
 public:
  explicit NewFile(const fs::path& path)
      : path_(path),
        temporary_(path.parent_path() / text(".", path.filename().string(), ".", ::getpid())) {
    ::unlink(temporary_.c_str());
    descriptor_ =
        ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (descriptor_ < 0) fail("create", errno);
  }
  ~NewFile() {
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// Takes the space now: a full memory file system would else end the process at a later store.
  void* filled_with(const TelemetryRecord& record) {
    const ssize_t written = ::pwrite(descriptor_, &record, sizeof record, 0);
    if (written != static_cast<ssize_t>(sizeof record)) fail("write", written < 0 ? errno : ENOSPC);
    void* memory =
        ::mmap(nullptr, sizeof record, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (memory == MAP_FAILED) fail("map", errno);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
      const int error = errno;
      ::munmap(memory, sizeof record);
      fail("rename", error);
    }
    return memory;
  }

 private:
  [[noreturn]] void fail(const char* doing, int error) const {
    throw Error(Code::io, text(doing, " ", path_.string(), ": ", reason(error)));
  }

  fs::path path_;
  fs::path temporary_;
  int descriptor_;
};

TelemetryRecord first_record(const TelemetryIdentity& identity, const Clock& clock) {
  const ProcessIdentity self = own_identity();
  TelemetryRecord record{};
  record.magic = kTelemetryMagic;
  record.version = kTelemetryVersion;
  record.size = sizeof record;
  record.pid = self.pid;
  record.host_pid = self.host_pid;
  record.pid_namespace = self.pid_namespace;
  record.start_time = self.start_time;
  record.started_wall_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(clock.wall().time_since_epoch()).count();
  record.started_ns = nanoseconds_of(clock.now());
  record.updated_ns = record.started_ns;
  record.rank = identity.rank;
  record.world_size = identity.world_size;
  record.local_rank = identity.local_rank;
  record.local_world_size = identity.local_world_size;
  put_text(record.job, identity.job);
  put_text(record.host, identity.host);
  put_text(record.card_uuid, identity.card_uuid);
  put_text(record.program, identity.program);
  record.queue_depth = -1;
  return record;
}

}  // namespace

// Note [Telemetry seqlock]
// The writer keeps its own copy of the record and stores changed 8-byte words into the mapping
// between two stores of `sequence`: odd before, even after. Each word is stored with release order,
// so whoever sees a new word also sees the odd sequence that came before it; a reader that finds
// the same even sequence before and after its copy has a whole record. No fence and no lock across
// processes: a writer that dies in the middle leaves an odd sequence, and nobody waits for it.
struct TelemetryWriter::State {
  State(const fs::path& root, const TelemetryIdentity& identity, const Clock& the_clock)
      : clock(the_clock), owner(::getpid()), image(first_record(identity, the_clock)) {
    make_root(root);
    if (identity.local_rank == 0) remove_old_telemetry(root, std::chrono::hours(24), the_clock);
    file = telemetry_file(root, identity.job, identity.rank);
    make_private_folder(file.parent_path());
    refuse_if_taken(file);
    words = static_cast<std::uint64_t*>(NewFile(file).filled_with(image));
  }

  ~State() {
    ::munmap(words, sizeof image);
    if (image.error_ns != 0 || ::getpid() != owner) return;
    ::unlink(file.c_str());
    ::rmdir(file.parent_path().c_str());  // stays while other ranks have files in it
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void store(std::size_t word, std::uint64_t value) {
    std::atomic_ref<std::uint64_t>(words[word]).store(value, std::memory_order_release);
  }

  /// Sets a member of the image, and its words in the mapping. Only inside change().
  template <class Member>
  void set(Member& member, const Member& value) {
    static_assert(sizeof(Member) % sizeof(std::uint64_t) == 0);
    member = value;
    const auto offset =
        reinterpret_cast<const char*>(&member) - reinterpret_cast<const char*>(&image);
    const std::size_t first = static_cast<std::size_t>(offset) / sizeof(std::uint64_t);
    std::array<std::uint64_t, sizeof(Member) / sizeof(std::uint64_t)> as_words;
    std::memcpy(as_words.data(), &member, sizeof member);
    for (std::size_t i = 0; i < as_words.size(); ++i) store(first + i, as_words[i]);
  }

  /// Runs `make(state)`, whose set() calls become visible together.
  template <class Make>
  void change(const Make& make) {
    const std::lock_guard lock(mutex);
    set(image.sequence, image.sequence + 1);
    set(image.updated_ns, nanoseconds_of(clock.now()));
    make(*this);
    set(image.sequence, image.sequence + 1);
  }

  const Clock& clock;
  pid_t owner;
  fs::path file;
  std::mutex mutex;
  TelemetryRecord image;
  std::uint64_t* words = nullptr;
};

fs::path telemetry_root(const EnvironmentMap& variables) {
  const std::string own = text("/dev/shm/yoke-", ::geteuid());
  return value_or(variables, "YOKE_TELEMETRY_DIR", own);
}

fs::path telemetry_file(const fs::path& root, std::string_view job, int rank) {
  std::string folder(job.substr(0, 128));
  for (char& c : folder) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '-' && c != '_' && c != '.') c = '_';
  }
  if (folder.find_first_not_of('.') == std::string::npos) folder = "_" + folder;  // "", ".", ".."
  return root / folder / text(rank);
}

TelemetryWriter::TelemetryWriter(const fs::path& root, const TelemetryIdentity& identity,
                                 const Clock& clock) noexcept {
  try {
    state_ = std::make_unique<State>(root, identity, clock);
  } catch (const std::exception& error) {
    say(Level::warning,
        std::string("no telemetry, so yoke top will not show this rank: ") + error.what());
  }
}

TelemetryWriter::~TelemetryWriter() = default;

void TelemetryWriter::step_ended(const StepFacts& facts) noexcept {
  if (!state_) return;
  state_->change([&](State& state) {
    TelemetryRecord& image = state.image;
    state.set(image.epoch, facts.epoch);
    state.set(image.step, facts.step);
    state.set(image.step_samples, facts.samples);
    state.set(image.sample_hash, facts.sample_hash);
    std::array<std::uint64_t, kStepPhases> last{};
    std::array<std::uint64_t, kStepPhases> total = image.total_phase_ns;
    for (std::size_t i = 0; i < kStepPhases; ++i) {
      last[i] = static_cast<std::uint64_t>(facts.phases[i].count());
      total[i] += last[i];
    }
    state.set(image.last_phase_ns, last);
    state.set(image.total_phase_ns, total);
    state.set(image.total_samples, image.total_samples + facts.samples);
    state.set(image.step_ended_ns, image.updated_ns);
  });
}

std::uint64_t TelemetryWriter::collective_began(const CollectiveFacts& facts) noexcept {
  std::uint64_t ticket = 0;
  if (!state_) return ticket;
  state_->change([&](State& state) {
    TelemetryRecord& image = state.image;
    ticket = image.collectives_begun;
    state.set(image.collectives[ticket % kTelemetryRing],
              CollectiveRecord{.sequence = facts.sequence,
                               .began_ns = image.updated_ns,
                               .ended_ns = 0,
                               .bytes = facts.bytes,
                               .kind = static_cast<std::uint32_t>(facts.kind),
                               .dtype = facts.dtype,
                               .group = facts.group,
                               .peer = facts.peer,
                               .reserved = {}});
    state.set(image.collectives_begun, ticket + 1);
  });
  return ticket;
}

void TelemetryWriter::collective_ended(std::uint64_t ticket) noexcept {
  if (!state_) return;
  state_->change([&](State& state) {
    TelemetryRecord& image = state.image;
    const bool overwritten = ticket + kTelemetryRing < image.collectives_begun;
    if (ticket >= image.collectives_begun || overwritten) return;
    state.set(image.collectives[ticket % kTelemetryRing].ended_ns, image.updated_ns);
  });
}

void TelemetryWriter::queue_depth(std::int64_t batches) noexcept {
  if (state_) state_->change([&](State& state) { state.set(state.image.queue_depth, batches); });
}

void TelemetryWriter::loss(double value) noexcept {
  if (!state_) return;
  state_->change([&](State& state) {
    state.set(state.image.loss, value);
    state.set(state.image.has_loss, std::uint64_t{1});
  });
}

void TelemetryWriter::failed(std::string_view error) noexcept {
  if (!state_) return;
  state_->change([&](State& state) {
    decltype(state.image.error) cut{};
    put_text(cut, error);
    state.set(state.image.error, cut);
    state.set(state.image.error_ns, state.image.updated_ns);
  });
}

}  // namespace yoke::core
