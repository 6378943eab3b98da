#include "engine.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "call.hpp"
#include "futex.hpp"
#include "yoke/core/text.hpp"

namespace yoke::shm {
namespace {

using Clock = std::chrono::steady_clock;

// Between two looks at whether the others live.
constexpr std::chrono::nanoseconds kSlice = std::chrono::milliseconds(50);
// A longer limit is none; in nanoseconds it would overflow.
constexpr std::chrono::hours kLongest(24 * 365);
// Polls between two readings of the clock.
constexpr int kPollsPerReading = 32;

std::chrono::nanoseconds spin_of(const TeamOptions& options) {
  if (options.spin) return *options.spin;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  // A rank that spins on the core that the awaited one needs would only delay it.
  if (::sched_getaffinity(0, sizeof(cores), &cores) != 0) return {};
  if (CPU_COUNT(&cores) < options.size) return {};
  return std::chrono::microseconds(50);
}

std::string duration_text(std::chrono::nanoseconds duration) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  if (milliseconds < 10'000) return core::text(milliseconds, " ms");
  return core::text(milliseconds / 1000, " s");
}

std::string reason_of(const Control& control) {
  return {control.reason.data(), std::min<std::size_t>(control.reason_bytes, kReasonBytes)};
}

}  // namespace

Engine::Engine(std::vector<Member> members, const TeamOptions& options)
    : members_(std::move(members)),
      rank_(options.rank),
      process_(member(options.rank).process),
      timeout_(std::min<std::chrono::milliseconds>(options.timeout, kLongest)),
      spin_(spin_of(options)) {}

Engine::~Engine() {
  // A forked child that ends must not say that its parent left.
  if (::getpid() == process_.pid) leave("", /*follows=*/false);
}

const Call& Engine::call(int rank, std::uint64_t sequence) const {
  return member(rank).control->calls[sequence % kSlots];
}

const Contribution& Engine::contribution(int rank, std::uint64_t sequence) const {
  return call(rank, sequence).contribution;
}

// Note [Who rings]
// A sleeper sets `asleep`, looks once more at what it waits for, and sleeps. A publisher stores its
// counter, and if with it all ranks have come that far, rings whoever is asleep. All these accesses
// are sequentially consistent, so of two that come together at least one sees the other: no wake-up
// is lost, and an event that completes nothing costs no system call.
bool Engine::all_arrived(std::uint64_t sequence) noexcept {
  if (sequence <= known_arrived_) return true;
  std::uint64_t least = UINT64_MAX;
  for (const Member& member : members_) least = std::min(least, member.control->arrived.load());
  known_arrived_ = least;
  return sequence <= least;
}

bool Engine::all_finished(std::uint64_t sequence) noexcept {
  if (sequence <= known_finished_) return true;
  std::uint64_t least = UINT64_MAX;
  for (const Member& member : members_) least = std::min(least, member.control->finished.load());
  known_finished_ = least;
  return sequence <= least;
}

void Engine::ring(int rank) noexcept {
  Control& control = *member(rank).control;
  if (control.asleep.load() == 0) return;
  control.bell.fetch_add(1);
  futex_wake(control.bell);
}

void Engine::ring_all() noexcept {
  for (int rank = 0; rank < size(); ++rank) ring(rank);
}

Ticket Engine::start(Task task) {
  check();
  const std::uint64_t sequence = started_ + 1;
  if (sequence > kSlots) wait_all_finished(sequence - kSlots);
  mine().calls[sequence % kSlots] = task.call;
  tasks_.push_back(std::move(task));
  started_ = sequence;
  mine().arrived.store(sequence);
  if (all_arrived(sequence)) ring_all();
  return {sequence};
}

bool Engine::progress() {
  check();
  bool did_something = false;
  while (worked_ < started_ && all_arrived(worked_ + 1)) {
    work_on(worked_ + 1);
    did_something = true;
  }
  while (!tasks_.empty() && may_complete(complete_ + 1)) {
    if (tasks_.front().after) tasks_.front().after();
    tasks_.pop_front();
    ++complete_;
    did_something = true;
  }
  return did_something;
}

bool Engine::may_complete(std::uint64_t sequence) noexcept {
  if (sequence > worked_) return false;
  return !tasks_.front().until_all_finished || all_finished(sequence);
}

void Engine::work_on(std::uint64_t sequence) {
  compare_calls(sequence);
  const Task& task = tasks_[sequence - complete_ - 1];
  if (task.work) task.work();
  worked_ = sequence;
  mine().finished.store(sequence);
  if (all_finished(sequence)) ring_all();
}

// Of the ranks that have arrived; their slots stay as they are until this rank has finished.
void Engine::compare_calls(std::uint64_t sequence) {
  int first = -1;
  for (int rank = 0; rank < size(); ++rank) {
    if (member(rank).control->arrived.load() < sequence) continue;
    if (first < 0) first = rank;
    const Call& one = call(first, sequence);
    const Call& other = call(rank, sequence);
    const std::optional<std::string> aspect = difference(one, other);
    if (!aspect) continue;
    fail(Error(Code::invalid_argument,
               core::text("rank ", rank_, ": operation #", sequence, ": ranks ", first, " and ",
                          rank, " made different calls: rank ", first, ": ", text_of(one),
                          ", rank ", rank, ": ", text_of(other), "; ", *aspect),
               "let every rank make the same calls in the same order"));
  }
}

void Engine::wait(Ticket ticket) {
  check();
  if (complete(ticket)) return;
  if (ticket.sequence > started_) {
    throw Error(Code::invalid_argument,
                core::text("rank ", rank_, ": wait for operation #", ticket.sequence, ": only ",
                           started_, " were started"));
  }
  wait_until({.sequence = ticket.sequence,
              .over = [&] { return complete(ticket); },
              .missing = [&] { return missing_at(ticket.sequence); },
              .what = [&] { return text_of(call(rank_, ticket.sequence), ticket.sequence); }});
}

void Engine::wait_all_finished(std::uint64_t sequence) {
  wait_until({.sequence = sequence,
              .over = [&] { return all_finished(sequence); },
              .missing = [&] { return missing_at(sequence); },
              .what = [&] { return text_of(call(rank_, sequence), sequence); }});
}

std::vector<int> Engine::missing_at(std::uint64_t sequence) const {
  std::vector<int> not_arrived;
  std::vector<int> not_finished;
  for (int rank = 0; rank < size(); ++rank) {
    const Control& control = *member(rank).control;
    if (control.arrived.load() < sequence) not_arrived.push_back(rank);
    if (control.finished.load() < sequence && rank != rank_) not_finished.push_back(rank);
  }
  return not_arrived.empty() ? not_finished : not_arrived;
}

bool Engine::poll(const Wait& wait) {
  progress();
  return wait.over();
}

bool Engine::spin(const Wait& wait) {
  const Clock::time_point begin = Clock::now();
  do {
    for (int i = 0; i < kPollsPerReading; ++i) {
      if (poll(wait)) return true;
      pause_core();
    }
  } while (Clock::now() - begin < spin_);
  return false;
}

void Engine::wait_until(const Wait& wait) {
  const Clock::time_point begin = Clock::now();
  if (poll(wait)) return;
  if (spin_.count() > 0 && spin(wait)) return;
  Control& control = mine();
  const struct Asleep {
    explicit Asleep(std::atomic<std::uint32_t>& here) : flag(here) { flag.store(1); }
    ~Asleep() { flag.store(0); }
    std::atomic<std::uint32_t>& flag;
  } asleep(control.asleep);
  Clock::time_point looked = begin;
  while (true) {
    const std::uint32_t bell = control.bell.load();
    if (poll(wait)) return;
    if (worked_ < started_) compare_calls(worked_ + 1);
    const Clock::time_point now = Clock::now();
    const bool look_for_dead = now - looked >= kSlice;
    if (look_for_dead) looked = now;
    find_lost(wait, look_for_dead);
    if (now - begin >= timeout_) give_up(wait, now - begin);
    futex_wait(control.bell, bell,
               std::min<std::chrono::nanoseconds>(kSlice, timeout_ - (now - begin)));
  }
}

// A rank that died is the cause of more than one that left, and one that left of its own accord of
// more than one that left because of another.
void Engine::find_lost(const Wait& wait, bool look_for_dead) {
  const std::vector<int> missing = wait.missing();
  const auto left = [&](int rank) {
    return member(rank).control->presence.load() == Presence::gone;
  };
  int lost = -1;
  for (const int rank : missing) {
    if (!left(rank)) continue;
    if (lost < 0 || (member(lost).control->follows != 0 && member(rank).control->follows == 0)) {
      lost = rank;
    }
  }
  std::string how = lost < 0 ? std::string{} : " left";
  if (lost >= 0 && member(lost).control->reason_bytes > 0) {
    how += ": " + reason_of(*member(lost).control);
  }
  for (const int rank : missing) {
    if ((!look_for_dead && lost < 0) || left(rank)) continue;
    const Process& process = member(rank).process;
    if (process.pid == process_.pid || is_alive(process)) continue;
    lost = rank;
    how = core::text(" (process ", process.pid, ") is gone");
    break;
  }
  // What it published before it went still counts.
  if (lost < 0 || poll(wait)) return;
  const std::vector<int> still = wait.missing();
  if (std::find(still.begin(), still.end(), lost) == still.end()) return;
  fail(Error(Code::peer_lost, core::text("rank ", rank_, ": ", wait.what(), ": rank ", lost, how),
             core::text("look for what ended rank ", lost)));
}

void Engine::give_up(const Wait& wait, std::chrono::nanoseconds waited) {
  std::vector<std::string> ranks;
  for (const int rank : wait.missing()) {
    ranks.push_back(core::text("rank ", rank, progress_text(rank, wait.sequence)));
  }
  fail(Error(Code::timeout,
             core::text("rank ", rank_, ": ", wait.what(), ": no answer from ", core::joined(ranks),
                        " in ", duration_text(waited)),
             "see what that rank was doing; raise the timeout if it is only slow"));
}

std::string Engine::progress_text(int rank, std::uint64_t sequence) const {
  if (sequence == 0) return {};
  const std::uint64_t arrived = member(rank).control->arrived.load();
  if (arrived >= sequence) return " (came, but has not finished)";
  return core::text(" (did not come; its last was #", arrived, ")");
}

void Engine::check() {
  if (error_) throw Error(*error_);
  if (mine().presence.load() != Presence::gone) return;
  error_ =
      Error(Code::peer_lost, core::text("rank ", rank_, ": this rank left its team",
                                        mine().reason_bytes > 0 ? ": " : "", reason_of(mine())));
  tasks_.clear();
  throw Error(*error_);
}

void Engine::fail(const Error& error) {
  error_ = error;
  tasks_.clear();
  leave(error.message(), error.code() == Code::peer_lost);
  throw Error(*error_);
}

void Engine::leave(std::string_view reason, bool follows) noexcept {
  Control& control = mine();
  Presence expected = Presence::here;
  if (!control.presence.compare_exchange_strong(expected, Presence::leaving)) return;
  const std::size_t bytes = std::min(reason.size(), kReasonBytes);
  std::memcpy(control.reason.data(), reason.data(), bytes);
  control.reason_bytes = static_cast<std::uint32_t>(bytes);
  control.follows = follows ? 1 : 0;
  control.presence.store(Presence::gone);
  ring_all();
}

}  // namespace yoke::shm
