#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "yoke/core/json.hpp"
#include "yoke/launch/failure.hpp"
#include "yoke/launch/restart.hpp"

namespace yoke::cluster {

struct CoordinatorOptions {
  std::string job_id{};
  int fewest{1};  ///< machines
  int most{1};
  launch::RestartOptions restart{};
  std::chrono::milliseconds join_timeout{600'000};
  std::chrono::milliseconds last_call{5'000};
  std::chrono::milliseconds lost_after{15'000};
};

/// Leads the machines of a job from one attempt to the next: they gather, run, stop and end
/// together.
///
///   Coordinator coordinator(options, now);
///   const core::Json answer = coordinator.hear(message, now);  // from each machine, again and
///   again coordinator.pass_time(now);
///
/// gather: machines come, until all are there (or, with fewest < most, enough of them and nobody
///   came for last_call). Two that want one number, or that were told different things, are refused
///   with both named. Then each learns the plan: its number, its ranks, where the ranks meet.
/// run: until a machine says that a rank failed, or is lost: then all stop. A signal that one got
///   is passed on to the others. A machine that comes back while its former self is in the plan
///   shows that that one is lost. With fewest < most a new machine makes all start again, at the
///   new size.
/// stop: until all of the plan have ended. Then RestartPolicy decides: gather again, or end.
/// end: everybody hears the exit code and the first cause.
/// Threads: one. Clock: none of its own.
class Coordinator {
 public:
  using Time = std::chrono::steady_clock::time_point;

  Coordinator(CoordinatorOptions options, Time now);

  /// Takes what a machine says (NodeLink has the form) and answers it.
  [[nodiscard]] core::Json hear(const core::Json& message, Time now);

  void pass_time(Time now);

  /// It has ended and every living machine knows.
  [[nodiscard]] bool finished(Time now) const;

  /// Requests that were not authentic, for the report.
  void count_refused() { ++refused_; }

 private:
  enum class Phase { gather, run, stop, end };
  enum class State { waiting, running, ended };

  struct Node {
    std::string id{};
    std::string host{};
    std::string address{};
    int pid = 0;
    int ranks = 1;
    int store_port = 0;
    std::optional<int> wanted{};  // node rank
    bool hosts_coordinator = false;
    State state = State::waiting;
    int round = 0;
    std::uint64_t count = 0;  // of its last message
    Time last_seen{};
    bool lost = false;
    bool told_end = false;
    std::optional<launch::Outcome> outcome{};
    std::size_t signals_seen = 0;
  };

  struct Signal {
    std::string from{};
    int number = 0;
  };

  [[nodiscard]] std::optional<core::Json> refusal(const core::Json& message, const Node* known);
  Node& enter(const core::Json& message, Time now);
  void update(Node& node, const core::Json& message, Time now);
  void replace_former_self(const Node& newcomer, Time now);
  void gather(Time now);
  void make_plan(Time now);
  void look_at_run(Time now);
  void look_at_stop(Time now);
  void begin_stop(std::string why, bool counts);
  void begin_gather(Time now);
  void finish(launch::Outcome outcome);
  void lose(Node& node, Time now, const std::string& how);
  [[nodiscard]] launch::Outcome combined() const;
  [[nodiscard]] std::vector<const Node*> waiting() const;
  [[nodiscard]] Node* find(const std::string& id);
  [[nodiscard]] bool in_plan(const Node& node) const;
  [[nodiscard]] core::Json answer(Node& node);
  [[nodiscard]] core::Json plan_for(const Node& node) const;

  CoordinatorOptions options_;
  launch::RestartPolicy policy_;
  Phase phase_ = Phase::gather;
  int round_ = 0;                    // plans made
  int attempt_ = 0;                  // restarts
  std::vector<Node> nodes_{};        // in order of coming; the lost stay for their outcome
  std::vector<std::string> plan_{};  // ids by node rank
  std::vector<launch::Failure> earlier_{};
  std::vector<Signal> signals_{};
  std::string why_{};
  bool counts_ = true;  // the stop is a failure, and not a change of size
  Time gather_since_{};
  Time last_change_{};
  Time plan_since_{};
  Time end_since_{};
  launch::Outcome outcome_{};
  int world_size_ = 0;
  std::uint64_t refused_ = 0;
};

/// An outcome on its way between machines.
[[nodiscard]] core::Json outcome_to_json(const launch::Outcome& outcome);
[[nodiscard]] launch::Outcome outcome_from_json(const core::Json& object);

}  // namespace yoke::cluster
