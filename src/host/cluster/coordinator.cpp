#include "yoke/cluster/coordinator.hpp"

#include <algorithm>
#include <set>

#include "yoke/cluster/message.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cluster {
namespace {

using core::Json;
using core::text;
using launch::Failure;
using launch::Outcome;

// After the end, for machines that are slow to ask.
constexpr std::chrono::seconds kLinger{5};

Json refused(const char* code, std::string message, std::string hint) {
  return Json{{"phase", "refused"},
              {"code", code},
              {"message", std::move(message)},
              {"hint", std::move(hint)}};
}

std::string range_text(int fewest, int most) {
  return fewest == most ? std::to_string(most) : text(fewest, ":", most);
}

double seconds_between(Coordinator::Time a, Coordinator::Time b) {
  return std::max(0.0, std::chrono::duration<double>(b - a).count());
}

}  // namespace

Coordinator::Coordinator(CoordinatorOptions options, Time now)
    : options_(std::move(options)), policy_(options_.restart) {
  gather_since_ = last_change_ = plan_since_ = end_since_ = now;
}

Json Coordinator::hear(const Json& message, Time now) {
  pass_time(now);
  Node* known = find(message.value("agent", ""));
  if (auto no = refusal(message, known)) return *no;
  Node& node = known != nullptr ? *known : enter(message, now);
  update(node, message, now);
  pass_time(now);
  Node* const still = find(message.value("agent", ""));
  if (still != nullptr) return answer(*still);
  // It was lost, and the others have gone on without it: it may come anew.
  return Json{{"phase", "gather"},
              {"agent", message.value("agent", "")},
              {"count", message.value("count", std::uint64_t{0})},
              {"round", round_},
              {"why", ""}};
}

std::optional<Json> Coordinator::refusal(const Json& message, const Node* known) {
  const std::string host = message.value("host", "?");
  if (message.value("protocol", 0) != kProtocol) {
    return refused("unsupported",
                   text("machine ", host, " speaks protocol ", message.value("protocol", 0),
                        ", the first one ", kProtocol),
                   "install one version of Yoke on all machines");
  }
  if (known != nullptr) {
    if (message.value("count", std::uint64_t{0}) > known->count) return std::nullopt;
    return refused("invalid_argument", "a message came twice", "");
  }
  const int fewest = message.value("fewest", 0);
  const int most = message.value("most", 0);
  if (fewest != options_.fewest || most != options_.most) {
    return refused("invalid_argument",
                   text("machine ", host, " was told --nnodes ", range_text(fewest, most),
                        ", the first one --nnodes ", range_text(options_.fewest, options_.most)),
                   "give all machines the same --nnodes");
  }
  const int wanted = message.value("node_rank", -1);
  if (wanted >= options_.most) {
    return refused(
        "invalid_argument",
        text("machine ", host, " is --node-rank ", wanted, " of --nnodes ", options_.most),
        text("give 0 to ", options_.most - 1));
  }
  if (wanted < 0 || phase_ != Phase::gather) return std::nullopt;
  const auto same = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& other) {
    return !other.lost && other.wanted == wanted;
  });
  if (same == nodes_.end()) return std::nullopt;
  return refused("invalid_argument",
                 text("node rank ", wanted, " joined twice (pid ", same->pid, " on host ",
                      same->host, ", pid ", message.value("pid", 0), " on host ", host, ")"),
                 "give each machine its own --node-rank");
}

Coordinator::Node& Coordinator::enter(const Json& message, Time now) {
  Node node{.id = message.value("agent", ""), .host = message.value("host", "?")};
  node.address = message.value("address", "");
  node.pid = message.value("pid", 0);
  node.ranks = message.value("ranks", 1);
  node.hosts_coordinator = message.value("hosts_coordinator", false);
  if (const int wanted = message.value("node_rank", -1); wanted >= 0) node.wanted = wanted;
  node.signals_seen = signals_.size();
  if (phase_ == Phase::run || phase_ == Phase::stop) replace_former_self(node, now);
  last_change_ = now;
  nodes_.push_back(std::move(node));
  return nodes_.back();
}

/// A machine comes that is in the plan already: its agent died, and was started again before it was
/// missed.
void Coordinator::replace_former_self(const Node& newcomer, Time now) {
  for (Node& node : nodes_) {
    const bool same = newcomer.wanted
                          ? node.wanted == newcomer.wanted
                          : node.host == newcomer.host && node.address == newcomer.address &&
                                options_.fewest == options_.most;
    if (same && in_plan(node) && !node.lost && node.state != State::ended)
      lose(node, now, "its launcher was started anew");
  }
}

void Coordinator::update(Node& node, const Json& message, Time now) {
  node.count = message.value("count", std::uint64_t{0});
  node.last_seen = now;
  node.store_port = message.value("store_port", 0);
  node.signals_seen = std::max<std::size_t>(node.signals_seen, message.value("signals_seen", 0U));
  for (const int number : message.value("signals", std::vector<int>{}))
    signals_.push_back({node.id, number});
  const std::string state = message.value("state", "waiting");
  const int round = message.value("round", 0);
  if (node.lost) return;  // it is out of this plan, whatever it says
  node.state = state == "running" ? State::running
               : state == "ended" ? State::ended
                                  : State::waiting;
  // The others failed before it heard the plan: it has started nothing.
  if (node.state == State::waiting && phase_ == Phase::stop && in_plan(node) && !node.outcome)
    node.outcome.emplace();
  if (round != round_) return;
  node.round = round;
  if (state == "ended" && message.contains("outcome"))
    node.outcome = outcome_from_json(message["outcome"]);
  if (message.value("failed", false) && phase_ == Phase::run && in_plan(node))
    begin_stop(text("a rank of machine ", node.host, " failed"), true);
}

void Coordinator::lose(Node& node, Time now, const std::string& how) {
  node.lost = true;
  Outcome outcome{.exit_code = 1};
  outcome.root_cause =
      Failure{.host = node.host,
              .code = "peer_lost",
              .message = text("machine ", node.host, " (", node.address, ") was lost: ", how),
              .hint = "look whether it runs, and at its launcher's last words",
              .seconds = seconds_between(plan_since_, node.last_seen)};
  node.outcome = std::move(outcome);
  if (phase_ == Phase::run && in_plan(node))
    begin_stop(text("machine ", node.host, " was lost"), true);
  last_change_ = now;
}

void Coordinator::pass_time(Time now) {
  for (Node& node : nodes_) {
    if (node.lost || now - node.last_seen < options_.lost_after) continue;
    lose(node, now,
         text("no word for ", std::chrono::duration<double>(options_.lost_after).count(), " s"));
  }
  switch (phase_) {
    case Phase::gather: return gather(now);
    case Phase::run: return look_at_run(now);
    case Phase::stop: return look_at_stop(now);
    case Phase::end:
      if (end_since_ == Time{}) end_since_ = now;
      return;
  }
}

std::vector<const Coordinator::Node*> Coordinator::waiting() const {
  std::vector<const Node*> out;
  for (const Node& node : nodes_) {
    if (!node.lost && node.state == State::waiting) out.push_back(&node);
  }
  return out;
}

void Coordinator::gather(Time now) {
  const auto there = waiting();
  const int count = static_cast<int>(there.size());
  if (count >= options_.most) return make_plan(now);
  // A store needs the first machine: without it nobody can start.
  const bool first_is_there = std::any_of(there.begin(), there.end(),
                                          [](const Node* node) { return node->hosts_coordinator; });
  if (count >= options_.fewest && first_is_there && now - last_change_ >= options_.last_call)
    return make_plan(now);
  if (now - gather_since_ < options_.join_timeout) return;
  std::vector<std::string> missing;
  for (int rank = 0; rank < options_.most; ++rank) {
    const bool here = std::any_of(there.begin(), there.end(),
                                  [&](const Node* node) { return node->wanted == rank; });
    if (!here) missing.push_back(std::to_string(rank));
  }
  std::vector<std::string> hosts;
  for (const Node* node : there) hosts.push_back(node->host);
  const bool numbered = std::all_of(there.begin(), there.end(),
                                    [](const Node* node) { return node->wanted.has_value(); });
  Outcome outcome{.exit_code = 1};
  outcome.root_cause = Failure{
      .code = "timeout",
      .message = text(
          count, " of ", range_text(options_.fewest, options_.most), " machines came in ",
          std::chrono::duration<double>(options_.join_timeout).count(), " s (", core::joined(hosts),
          ")", numbered ? "; missing: node rank " + core::joined(missing) : ""),
      .hint = "look at the launchers of the others; --rdzv-conf join_timeout=S waits longer"};
  finish(std::move(outcome));
}

void Coordinator::make_plan(Time now) {
  std::vector<const Node*> there = waiting();
  // Those with a number first, by it; the first machine before the others without one.
  const auto key = [&](const Node* node) {
    return node->hosts_coordinator ? node->wanted.value_or(-1)
                                   : node->wanted.value_or(options_.most);
  };
  std::stable_sort(there.begin(), there.end(),
                   [&](const Node* a, const Node* b) { return key(a) < key(b); });
  there.resize(std::min<std::size_t>(there.size(), static_cast<std::size_t>(options_.most)));
  plan_.clear();
  world_size_ = 0;
  for (const Node* node : there) {
    plan_.push_back(node->id);
    world_size_ += node->ranks;
  }
  for (Node& node : nodes_) node.outcome.reset();
  ++round_;
  phase_ = Phase::run;
  plan_since_ = now;
}

bool Coordinator::in_plan(const Node& node) const {
  return std::find(plan_.begin(), plan_.end(), node.id) != plan_.end();
}

Coordinator::Node* Coordinator::find(const std::string& id) {
  const auto found =
      std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.id == id; });
  return found == nodes_.end() ? nullptr : &*found;
}

void Coordinator::look_at_run(Time now) {
  bool all_ended = true;
  for (const Node& node : nodes_) {
    if (!in_plan(node)) continue;
    all_ended = all_ended && node.outcome.has_value();
    if (node.outcome && node.outcome->root_cause) {
      begin_stop(text("a rank of machine ", node.host, " failed"), true);
      return look_at_stop(now);
    }
  }
  if (all_ended) return finish(combined());
  const bool room = plan_.size() < static_cast<std::size_t>(options_.most);
  if (room && options_.fewest < options_.most && !waiting().empty()) {
    const bool newcomer = std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& node) {
      return !node.lost && node.state == State::waiting && !in_plan(node);
    });
    if (newcomer) begin_stop("a machine came", false);
  }
}

void Coordinator::begin_stop(std::string why, bool counts) {
  if (phase_ != Phase::run) return;
  phase_ = Phase::stop;
  why_ = std::move(why);
  counts_ = counts;
}

void Coordinator::look_at_stop(Time now) {
  for (const Node& node : nodes_) {
    if (in_plan(node) && !node.outcome) return;
  }
  Outcome outcome = combined();
  if (!counts_ && !outcome.root_cause) return begin_gather(now);
  const launch::RestartPolicy::Decision decision = policy_.after(outcome, now);
  if (!decision.again || !outcome.root_cause) {
    outcome.exit_code = decision.exit_code;
    if (!decision.why.empty()) why_ = decision.why;
    outcome.earlier = earlier_;
    return finish(std::move(outcome));
  }
  why_ = text(launch::describe(*outcome.root_cause), "; ", decision.why);
  earlier_.push_back(*outcome.root_cause);
  begin_gather(now);
}

void Coordinator::begin_gather(Time now) {
  ++attempt_;
  phase_ = Phase::gather;
  gather_since_ = last_change_ = now;
  std::erase_if(nodes_, [](const Node& node) { return node.lost; });
}

void Coordinator::finish(Outcome outcome) {
  outcome_ = std::move(outcome);
  phase_ = Phase::end;
  end_since_ = Time{};
}

bool Coordinator::finished(Time now) const {
  if (phase_ != Phase::end) return false;
  const bool all_told = std::all_of(nodes_.begin(), nodes_.end(),
                                    [](const Node& node) { return node.lost || node.told_end; });
  return all_told || (end_since_ != Time{} && now - end_since_ > kLinger);
}

/// Failures of all machines, by the time since the start of their ranks.
Outcome Coordinator::combined() const {
  Outcome whole;
  std::vector<Failure> failures;
  int code = 0;
  for (const Node& node : nodes_) {
    if (!in_plan(node) || !node.outcome) continue;
    const Outcome& part = *node.outcome;
    if (part.root_cause) failures.push_back(*part.root_cause);
    failures.insert(failures.end(), part.follow_ups.begin(), part.follow_ups.end());
    whole.stopped.insert(whole.stopped.end(), part.stopped.begin(), part.stopped.end());
    if (part.furthest_step)
      whole.furthest_step = std::max(whole.furthest_step.value_or(0), *part.furthest_step);
    // Stopped by us is no word of its own.
    if (!part.root_cause) code = std::max(code, part.exit_code);
  }
  std::sort(whole.stopped.begin(), whole.stopped.end());
  launch::choose_root_cause(std::move(failures), whole);
  if (!whole.root_cause) {
    whole.exit_code = code;
    return whole;
  }
  const int own = whole.root_cause->exit_code;
  whole.exit_code = own >= 2 && own <= 4 ? own : 1;
  return whole;
}

Json Coordinator::plan_for(const Node& node) const {
  Json plan;
  int first_rank = 0;
  for (std::size_t rank = 0; rank < plan_.size(); ++rank) {
    const auto other = std::find_if(nodes_.begin(), nodes_.end(),
                                    [&](const Node& one) { return one.id == plan_[rank]; });
    if (other == nodes_.end()) continue;
    if (rank == 0) {
      plan["master_address"] = other->address;
      plan["master_port"] = other->store_port;
    }
    if (other->id == node.id) {
      plan["node_rank"] = rank;
      plan["first_rank"] = first_rank;
    }
    first_rank += other->ranks;
  }
  plan["node_count"] = plan_.size();
  plan["world_size"] = world_size_;
  plan["attempt"] = attempt_;
  plan["job"] = options_.job_id;
  plan["max_restarts"] = options_.restart.limit;
  return plan;
}

Json Coordinator::answer(Node& node) {
  // A machine that is not in the plan waits for the next one.
  const bool waits =
      (phase_ == Phase::run || phase_ == Phase::stop) && (!in_plan(node) || node.lost);
  static constexpr const char* kNames[] = {"gather", "run", "stop", "end"};
  Json out{{"phase", waits ? "gather" : kNames[static_cast<int>(phase_)]},
           {"agent", node.id},
           {"count", node.count},
           {"round", round_},
           {"why", why_}};
  if (phase_ == Phase::run && !waits) out["plan"] = plan_for(node);
  std::vector<int> signals;
  for (std::size_t i = node.signals_seen; i < signals_.size(); ++i) {
    if (signals_[i].from != node.id) signals.push_back(signals_[i].number);
  }
  out["signals"] = signals;
  out["signals_seen"] = signals_.size();
  if (phase_ == Phase::end) {
    out["outcome"] = outcome_to_json(outcome_);
    out["world_size"] = world_size_;
    out["refused"] = refused_;
    out["job"] = options_.job_id;
    node.told_end = true;
  }
  return out;
}

}  // namespace yoke::cluster
