#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>

namespace yoke::feed {

/// Rows `first` to `last` (excluded) of the batch with this ticket, to be filled in this slot.
struct Piece {
  std::int64_t ticket = 0;
  std::size_t slot = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
  int worker = -1;  ///< that fills it; -1: next()'s caller
};

/// What a ring does. Called from its threads, several at a time.
struct RingWork {
  /// Rows of a batch; 0 is allowed. Quick, must not throw.
  std::function<std::int64_t(std::int64_t ticket)> rows;
  /// May throw: next() then throws the same.
  std::function<void(const Piece&)> fill;
};

struct RingOptions {
  std::size_t slots = 4;
  unsigned workers = 2;                        ///< 0: next() fills in the caller's thread
  std::int64_t rows_per_piece = 1;             ///< what a worker takes at a time
  std::chrono::milliseconds timeout{300'000};  ///< how long next(), rest() and seek() wait
};

/// Fills numbered batches ahead of their reader, out of order, and hands them out in order.
///
///   SlotRing ring({.slots = 4, .workers = 2}, {.rows = ..., .fill = ...});
///   ring.seek(0);
///   while (const auto ready = ring.next()) {
///     use(buffers[ready->slot]);
///     ring.release();
///   }
///
/// Batch t lies in slot t mod slots. At most `slots` batches are being filled, full, or held at a
/// time. A worker takes pieces of a batch, so that one slow sample holds up one worker, not a
/// batch.
///
/// Owns: its threads, from construction to destruction. The slots' memory is the caller's.
/// Threads: all calls from one thread; report() from any.
/// Errors: what fill() threw, from the next() whose turn it is: batches before the first failing
///   one are still handed out, whatever the number of workers; of one batch, the error of the
///   lowest row. After that, and after Code::timeout, which says how much is there, next() throws
///   the same until seek().
/// Cost: one lock per piece.
class SlotRing {
 public:
  static constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

  struct Ready {
    std::int64_t ticket;
    std::size_t slot;
  };

  struct Report {
    std::int64_t handed_out = 0;         ///< batches, since construction
    std::chrono::nanoseconds waited{0};  ///< of which next() was blocked so long in all
    std::int64_t ready = 0;              ///< batches that are full now
    unsigned active = 0;                 ///< workers that may take pieces
    std::int64_t found_full = 0;         ///< next() calls that found all slots full but two
  };

  SlotRing(RingOptions options, RingWork work);
  ~SlotRing();  ///< waits for pieces that are being filled
  SlotRing(const SlotRing&) = delete;
  SlotRing& operator=(const SlotRing&) = delete;

  /// Drops everything and rests until seek(): nobody is inside the ring's work when this returns.
  void rest();

  /// Drops everything and begins at ticket `first`; the ring ends before `end`. Waits for pieces
  /// that are being filled, as rest() does.
  void seek(std::int64_t first, std::int64_t end = kNoEnd);

  /// The next batch, when it is full; nothing at the end. The slot is the caller's until release().
  /// Errors: also invalid_argument where every slot is held.
  [[nodiscard]] std::optional<Ready> next();

  /// Whether next() would not wait.
  [[nodiscard]] bool has_next() const;

  /// Gives back the oldest slot that is held. Requires: one is.
  void release();

  /// How many of the workers take pieces from now on, at least one; the others rest.
  void set_active(unsigned workers);

  [[nodiscard]] Report report() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace yoke::feed
