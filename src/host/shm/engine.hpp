#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control.hpp"
#include "yoke/core/error.hpp"
#include "yoke/shm/team.hpp"

namespace yoke::shm {

/// The sequence of a team's operations: each is posted by all ranks ("arrived"), then each rank
/// does its work on it ("finished"). A collective is what it posts and the work it hands over.
///
/// Note [Two counters per rank]
/// All ranks run the same operations in the same order, so one number says of a rank which it has
/// posted and one which it has finished: operation s may be worked on once every `arrived` is at
/// least s, and every rank is through with it once every `finished` is. Calls lie in rings of
/// kSlots; the slot of s is free again once every rank has finished s.
class Engine {
 public:
  Engine(std::vector<Member> members, const TeamOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  struct Task {
    Call call;
    std::function<void()> work{};            ///< runs once all ranks have arrived
    std::function<void()> after{};           ///< runs when the operation is complete
    bool until_all_finished{false};          ///< complete only once the others' work is done too
    std::shared_ptr<const Region> region{};  ///< kept until then
  };

  /// Posts the task. Waits only while kSlots operations are in flight.
  Ticket start(Task task);
  bool progress();
  [[nodiscard]] bool complete(Ticket ticket) const noexcept { return ticket.sequence <= complete_; }
  void wait(Ticket ticket);
  /// Waits until every rank has finished the operation: whatever it reads may then be overwritten.
  void wait_all_finished(std::uint64_t sequence);

  struct Wait {
    std::uint64_t sequence{0};  ///< the operation waited for; 0: a message
    std::function<bool()> over{};
    std::function<std::vector<int>()> missing{};  ///< the ranks waited for
    std::function<std::string()> what{};          ///< for errors
  };
  /// Makes progress until it is over. Errors: as Team's.
  void wait_until(const Wait& wait);

  /// Wakes a rank if it sleeps, after something it may wait for was published.
  void ring(int rank) noexcept;

  /// Throws the first error, if there was one.
  void check();
  /// Makes `error` the first one, leaves, and throws it.
  [[noreturn]] void fail(const Error& error);
  void leave(std::string_view reason, bool follows) noexcept;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(members_.size()); }
  [[nodiscard]] const Member& member(int rank) const {
    return members_[static_cast<std::size_t>(rank)];
  }
  /// The contribution of a rank to an operation at which all have arrived.
  [[nodiscard]] const Contribution& contribution(int rank, std::uint64_t sequence) const;
  [[nodiscard]] std::uint64_t started() const noexcept { return started_; }

 private:
  [[nodiscard]] Control& mine() const noexcept { return *member(rank_).control; }
  [[nodiscard]] const Call& call(int rank, std::uint64_t sequence) const;
  [[nodiscard]] bool all_arrived(std::uint64_t sequence) noexcept;
  [[nodiscard]] bool all_finished(std::uint64_t sequence) noexcept;
  [[nodiscard]] std::vector<int> missing_at(std::uint64_t sequence) const;
  [[nodiscard]] bool may_complete(std::uint64_t sequence) noexcept;
  void work_on(std::uint64_t sequence);
  void ring_all() noexcept;
  bool poll(const Wait& wait);
  bool spin(const Wait& wait);
  void compare_calls(std::uint64_t sequence);
  void find_lost(const Wait& wait, bool look_for_dead);
  [[nodiscard]] std::string progress_text(int rank, std::uint64_t sequence) const;
  [[noreturn]] void give_up(const Wait& wait, std::chrono::nanoseconds waited);

  std::vector<Member> members_;
  int rank_;
  Process process_;
  std::chrono::nanoseconds timeout_;
  std::chrono::nanoseconds spin_;
  std::uint64_t started_{0};        // by this rank
  std::uint64_t worked_{0};         // by this rank
  std::uint64_t complete_{0};       // on this rank
  std::uint64_t known_arrived_{0};  // on all ranks, when last looked at
  std::uint64_t known_finished_{0};
  std::deque<Task> tasks_;  // of complete_ + 1 to started_
  std::optional<Error> error_;
};

}  // namespace yoke::shm
