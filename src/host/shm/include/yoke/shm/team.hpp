#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/shm/dtype.hpp"
#include "yoke/shm/reduction.hpp"
#include "yoke/shm/shared_buffer.hpp"

namespace yoke::shm {

/// Gathers one text of every rank, in rank order: a store, or a fake between threads. A team calls
/// it twice, while it is made. It must have a limit of its own.
using Exchange = std::function<std::vector<std::string>(std::string mine)>;

struct TeamOptions {
  int rank{0};
  int size{1};
  std::chrono::milliseconds timeout{std::chrono::minutes(5)};  ///< for each wait
  /// How long a wait spins before it sleeps; not given: 50 us where each rank has a core, else 0.
  std::optional<std::chrono::microseconds> spin{};
  /// What the blocking collectives copy through, per rank; equal on all ranks.
  std::size_t staging_bytes{2 << 20};
};

/// What a collective moves. Ranks are compared by all of it.
struct Elements {
  std::size_t count{0};
  Dtype dtype{Dtype::float32};
  std::string_view shape{};  ///< as errors shall show it, e.g. "20x10"; may be empty
};

/// Names an operation that was started; one that was never started counts as done.
struct Ticket {
  std::uint64_t sequence{0};
};

/// The ranks of one host: collectives on plain memory, between processes or threads of one process.
///
///   Team team(exchange, {.rank = rank, .size = 2});
///   SharedBuffer bucket = team.allocate(bytes);
///   const Ticket ticket = team.start_all_reduce(bucket, 0, {.count = n}, Reduction::mean);
///   while (computing()) team.progress();  // no thread of ours: work is done in these calls
///   team.wait(ticket);                    // the mean over ranks, in equal bits on each
///
/// Ranks: every member but progress, done, wait, abort, send and receive is collective: all ranks
///   make the same calls in the same order. Operations run in that order.
/// Owns: its segment, staging and operations. A SharedBuffer is kept alive by operations on it.
/// Threads: one at a time; abort() from any. A forked child must not use its parent's team.
/// Errors: invalid_argument on every rank if their calls differ, with both sides; peer_lost if a
/// rank
///   died, closed its team or failed, naming it; timeout, naming the ranks that did not come. After
///   one of these the team is unusable: every call throws the first error again. An argument
///   refused before anything was sent (unknown root, bytes outside the buffer) leaves it usable.
/// Cost: docs/shm.md; an all-reduce of B bytes in place reads B and writes B per rank, for any
///   number of ranks.
class Team {
 public:
  /// Meets the other ranks. Errors: unsupported, on every rank, where one cannot map another's
  /// memory (other host or process namespace, no permission); then fall back to sockets. `exchange`
  /// may be empty where size is 1.
  Team(const Exchange& exchange, TeamOptions options);
  ~Team();  ///< leaves: ranks that still wait for this one get peer_lost
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;

  /// Memory for start_all_reduce. Errors: io on every rank if one has none left; the team stays
  /// usable.
  [[nodiscard]] SharedBuffer allocate(std::size_t bytes);

  /// Starts to reduce `elements` at `byte_offset` of the buffer, in place, and returns at once (but
  /// waits for the oldest operation if 128 are in flight). The bytes are not the caller's until
  /// done(). Requires: byte_offset a multiple of the element's size; nothing that overlaps another
  /// in flight.
  Ticket start_all_reduce(const SharedBuffer& buffer, std::size_t byte_offset, Elements elements,
                          Reduction reduction, Contribution contribution = {});

  /// Does what can be done now without waiting; whether there was anything. Cheap if not.
  bool progress();

  /// Whether the operation is complete on this rank; makes progress.
  [[nodiscard]] bool done(Ticket ticket);

  /// Makes progress until the operation is complete.
  void wait(Ticket ticket);

  /// The blocking ones take any memory of the caller's.
  void all_reduce(void* data, Elements elements, Reduction reduction,
                  Contribution contribution = {});
  void broadcast(void* data, Elements elements, int root);
  /// `each` elements of every rank, in rank order, to `out`; `in` may be this rank's place in it.
  void all_gather(const void* in, void* out, Elements each);
  /// `in` holds `each` elements for every rank; `out` gets this rank's, reduced. `out` may be this
  /// rank's place in `in`.
  void reduce_scatter(const void* in, void* out, Elements each, Reduction reduction,
                      Contribution contribution = {});
  /// `in` holds `each` elements for every rank, `out` gets as many from every rank; both may be
  /// one.
  void all_to_all(const void* in, void* out, Elements each);
  /// Returns once every rank has called it.
  void barrier();

  /// Hands `elements` to rank `to`, in the order of calls per pair of ranks. May wait until the
  /// other side receives (what is in its way holds 64 KiB).
  void send(const void* data, Elements elements, int to);
  /// Errors: invalid_argument if the sender's elements are others than these.
  void receive(void* data, Elements elements, int from);

  /// Leaves the team with a reason, which ranks that wait for this one get to read. Also wakes a
  /// wait of this rank in another thread.
  void abort(std::string_view reason) noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace yoke::shm
