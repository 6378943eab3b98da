#include "yoke/feed/slot_ring.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCaller = -1;  // in place of a worker's number

}  // namespace

// Tickets grow from left to right, and so do the marks:
//   released <= handed <= opened, handed <= released + slots, opened <= released + slots
// `opened` is the batch whose rows are being given to workers; those between `handed` and it are
// full or nearly so.
struct SlotRing::State {
  struct Slot {
    std::int64_t rows = 0;
    std::int64_t taken = 0;    // rows given to workers
    std::int64_t running = 0;  // pieces being filled
    std::exception_ptr error;
    std::int64_t error_row = 0;
  };

  State(RingOptions ring_options, RingWork ring_work)
      : options(ring_options),
        work(std::move(ring_work)),
        slots(options.slots),
        active(options.workers) {
    threads.reserve(options.workers);
    try {
      for (unsigned i = 0; i < options.workers; ++i)
        threads.emplace_back([this, i] { serve(static_cast<int>(i)); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~State() { stop(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void stop() noexcept {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    work_changed.notify_all();
    for (std::thread& thread : threads) thread.join();
    threads.clear();
  }

  Slot& slot_of(std::int64_t ticket) { return slots[index_of(ticket)]; }
  const Slot& slot_of(std::int64_t ticket) const { return slots[index_of(ticket)]; }
  [[nodiscard]] std::size_t index_of(std::int64_t ticket) const {
    return static_cast<std::size_t>(ticket) % slots.size();
  }

  // The next piece to fill, if one may be filled now. Opens batches on the way; those of 0 rows are
  // full at once.
  std::optional<Piece> take(int worker) {
    const auto window = static_cast<std::int64_t>(slots.size());
    while (!paused && opened < std::min(end, failed) && opened - released < window) {
      Slot& slot = slot_of(opened);
      if (slot.taken == 0) slot.rows = work.rows(opened);
      const std::int64_t last = std::min(slot.rows, slot.taken + options.rows_per_piece);
      const Piece piece{opened, index_of(opened), slot.taken, last, worker};
      slot.taken = last;
      if (last == slot.rows) ++opened;
      if (piece.first == piece.last) {
        batch_ready.notify_one();
        continue;
      }
      ++slot.running;
      return piece;
    }
    return std::nullopt;
  }

  void settle(const Piece& piece, std::exception_ptr error) {
    Slot& slot = slot_of(piece.ticket);
    --slot.running;
    if (error && (!slot.error || piece.first < slot.error_row)) {
      slot.error = std::move(error);
      slot.error_row = piece.first;
      failed = std::min(failed, piece.ticket);
    }
    if (is_ready(piece.ticket) || paused) batch_ready.notify_one();
  }

  // Full, or failed with nobody in it any more.
  [[nodiscard]] bool is_ready(std::int64_t ticket) const {
    if (ticket > opened || (ticket == opened && ticket != failed)) return false;
    return slot_of(ticket).running == 0;
  }

  [[nodiscard]] std::int64_t ready() const {
    std::int64_t count = 0;
    for (std::int64_t ticket = handed; ticket < opened; ++ticket) {
      if (is_ready(ticket) && !slot_of(ticket).error) ++count;
    }
    return count;
  }

  // But for the slot that the reader has just given back and the one that it may still hold.
  [[nodiscard]] bool all_full() const {
    return ready() >= std::max<std::int64_t>(1, static_cast<std::int64_t>(slots.size()) - 2);
  }

  void run(const Piece& piece, std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    std::exception_ptr error;
    try {
      work.fill(piece);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    settle(piece, std::move(error));
  }

  void serve(int worker) {
    std::unique_lock lock(mutex);
    while (!stopping) {
      const bool may_work = static_cast<unsigned>(worker) < active;
      if (const auto piece = may_work ? take(worker) : std::nullopt) {
        run(*piece, lock);
      } else {
        work_changed.wait(lock);
      }
    }
  }

  [[nodiscard]] std::int64_t pieces_running() const {
    std::int64_t sum = 0;
    for (const Slot& slot : slots) sum += slot.running;
    return sum;
  }

  void wait_until_ready(std::unique_lock<std::mutex>& lock) {
    if (is_ready(handed)) return;
    const auto begin = Clock::now();
    const bool in_time =
        batch_ready.wait_for(lock, options.timeout, [this] { return is_ready(handed); });
    waited += Clock::now() - begin;
    if (!in_time) fail_late("wait for batch", slot_of(handed).running);
  }

  void wait_until_idle(std::unique_lock<std::mutex>& lock) {
    paused = true;
    const bool in_time =
        batch_ready.wait_for(lock, options.timeout, [this] { return pieces_running() == 0; });
    if (!in_time) fail_late("drop what was begun at batch", pieces_running());
  }

  [[noreturn]] void fail_late(const char* doing, std::int64_t running) {
    failure = std::make_exception_ptr(Error(
        Code::timeout,
        core::text(doing, " ", handed, ": not done after ", options.timeout.count(), " ms; ",
                   running, " pieces are still being filled by ", options.workers, " workers"),
        "see what the data set waits for, or raise timeout if it is only slow"));
    std::rethrow_exception(failure);
  }

  const RingOptions options;
  const RingWork work;

  mutable std::mutex mutex;
  std::condition_variable work_changed;  // for workers: a slot is free, a new beginning, the end
  std::condition_variable batch_ready;   // for next() and seek()
  std::vector<Slot> slots;
  std::int64_t released = 0;
  std::int64_t handed = 0;
  std::int64_t opened = 0;
  std::int64_t end = 0;
  std::int64_t failed = kNoEnd;  // the first batch with an error
  std::exception_ptr failure;    // what next() throws until seek()
  bool paused = false;           // seek() waits for running pieces
  bool stopping = false;
  unsigned active;  // workers that may take pieces: those of the lowest numbers
  std::int64_t handed_out = 0;
  std::int64_t found_full = 0;
  std::chrono::nanoseconds waited{0};

  std::vector<std::thread> threads;
};

SlotRing::SlotRing(RingOptions options, RingWork work) {
  if (options.slots < 1 || options.rows_per_piece < 1) {
    throw Error(Code::invalid_argument, core::text("slot ring: ", options.slots, " slots, ",
                                                   options.rows_per_piece, " rows per piece"));
  }
  state_ = std::make_unique<State>(options, std::move(work));
}

SlotRing::~SlotRing() = default;

void SlotRing::rest() {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  s.wait_until_idle(lock);
}

void SlotRing::seek(std::int64_t first, std::int64_t end) {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  s.wait_until_idle(lock);
  std::ranges::fill(s.slots, State::Slot{});
  s.released = s.handed = s.opened = first;
  s.end = end;
  s.failed = kNoEnd;
  s.failure = nullptr;
  s.paused = false;
  lock.unlock();
  s.work_changed.notify_all();
}

std::optional<SlotRing::Ready> SlotRing::next() {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  if (s.failure) std::rethrow_exception(s.failure);
  if (s.handed >= s.end) return std::nullopt;
  if (s.handed - s.released >= static_cast<std::int64_t>(s.slots.size())) {
    throw Error(Code::invalid_argument,
                core::text("take batch ", s.handed, ": all ", s.slots.size(), " slots are held"),
                "release() one first");
  }
  if (s.all_full()) ++s.found_full;
  if (s.threads.empty()) {
    while (!s.is_ready(s.handed)) {
      if (const auto piece = s.take(kCaller)) s.run(*piece, lock);
    }
  } else {
    s.wait_until_ready(lock);
  }
  if (State::Slot& slot = s.slot_of(s.handed); slot.error) {
    s.failure = slot.error;
    std::rethrow_exception(s.failure);
  }
  ++s.handed_out;
  const std::int64_t ticket = s.handed++;
  return Ready{ticket, s.index_of(ticket)};
}

bool SlotRing::has_next() const {
  const State& s = *state_;
  const std::lock_guard lock(s.mutex);
  const bool a_slot_is_free = s.handed - s.released < static_cast<std::int64_t>(s.slots.size());
  return s.failure || s.handed >= s.end || (a_slot_is_free && s.is_ready(s.handed));
}

void SlotRing::release() {
  State& s = *state_;
  {
    const std::lock_guard lock(s.mutex);
    s.slot_of(s.released) = State::Slot{};
    ++s.released;
  }
  s.work_changed.notify_all();
}

void SlotRing::set_active(unsigned workers) {
  State& s = *state_;
  {
    const std::lock_guard lock(s.mutex);
    s.active = std::clamp(workers, std::min(1U, s.options.workers), s.options.workers);
  }
  s.work_changed.notify_all();
}

SlotRing::Report SlotRing::report() const {
  const State& s = *state_;
  const std::lock_guard lock(s.mutex);
  return {.handed_out = s.handed_out,
          .waited = s.waited,
          .ready = s.ready(),
          .active = s.active,
          .found_full = s.found_full};
}

}  // namespace yoke::feed
