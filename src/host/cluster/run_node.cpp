#include "yoke/cluster/run_node.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <memory>
#include <utility>

#include "node_link.hpp"
#include "yoke/cluster/coordinator.hpp"
#include "yoke/cluster/hosts.hpp"
#include "yoke/cluster/interfaces.hpp"
#include "yoke/cluster/secret.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/network.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"
#include "yoke/launch/exit_code.hpp"

namespace yoke::cluster {
namespace {

using core::Json;
using core::Level;
using core::say;
using core::text;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kAskAgain{100};
constexpr milliseconds kNameLimit{20'000};
constexpr milliseconds kCoordinatorStart{10'000};
constexpr milliseconds kCoordinatorEnd{10'000};

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

void wait(milliseconds time) { ::poll(nullptr, 0, static_cast<int>(time.count())); }

class NodeRun {
 public:
  NodeRun(const RunNodeOptions& options, const core::EnvironmentMap& variables)
      : options_(options), nodes_(options.nodes), variables_(variables), all_(interfaces()) {}

  int run() {
    endpoint_ = find_endpoint();
    choose_own_address();
    key_ = job_key(find_secret(nodes_.secret_file, variables_), options_.launch.job_id);
    if (nodes_.secret_file == "-") end_with_input();
    const bool first = start_coordinator();
    NodeFacts facts{.host = host_name(),
                    .address = own_.address,
                    .ranks = options_.launch.ranks,
                    .fewest = nodes_.fewest,
                    .most = nodes_.most,
                    .node_rank = nodes_.node_rank,
                    .hosts_coordinator = first};
    link_ = std::make_unique<NodeLink>(endpoint_, key_, facts, nodes_.lost_after);
    while (true) {
      launch::StorePort store =
          launch::reserve_store_port(std::nullopt, options_.launch.listen, own_.address);
      link_->store_port(store.port);
      const Json answer = join();
      if (answer.value("phase", "") == "end") return end(answer);
      const launch::Outcome outcome = run_round(answer, store);
      const std::optional<Json> next = leave_round(answer.value("round", 0), outcome);
      if (!next) return alone(outcome);
      if (next->value("phase", "") == "end") return end(*next);
      const std::string why = next->value("why", "");
      if (!why.empty()) say(Level::warning, why);
    }
  }

 private:
  Endpoint find_endpoint() {
    std::string host = nodes_.endpoint_host.empty() ? nodes_.master_address : nodes_.endpoint_host;
    if (host.empty()) {
      throw Error(Code::invalid_argument,
                  text("--nnodes ", nodes_.most, ": no place for the machines to meet"),
                  "give all of them --rdzv-endpoint FIRST_HOST:29400");
    }
    int port = nodes_.endpoint_port;
    if (port == 0) port = nodes_.master_port;
    if (port == 0) port = kCoordinatorPort;
    return resolved(host, port);
  }

  /// In a cluster that is just starting the first machine's name may come to be known a little
  /// later.
  static Endpoint resolved(const std::string& host, int port) {
    const auto limit = Clock::now() + kNameLimit;
    for (bool said = false;; said = true) {
      try {
        return resolve_endpoint(host, port);
      } catch (const Error& error) {
        if (Clock::now() >= limit) throw;
        if (!said) say(Level::info, text(error.message(), "; trying for a while"));
      }
      wait(kAskAgain * 5);
    }
  }

  /// The address by which the others reach this machine, and its interface.
  void choose_own_address() {
    const std::string gloo = core::value_or(variables_, "GLOO_SOCKET_IFNAME");
    if (!nodes_.interface.empty()) {
      own_ = choose_interface(nodes_.interface, all_);
    } else if (!nodes_.own_address.empty()) {
      own_ = interface_of(resolve_endpoint(nodes_.own_address, 0).address, all_);
    } else if (!gloo.empty()) {
      core::check_gloo_interface(variables_, core::network_interfaces());
      own_ = choose_interface(gloo, all_);
    } else if (is_here(endpoint_.address)) {
      own_ = interface_of(endpoint_.address, all_);
    } else {
      own_ = interface_of(address_towards(endpoint_), all_);
    }
    if (own_.address.empty()) {
      throw Error(
          Code::unsupported,
          text("this machine has no route to ", endpoint_.text(), " (", endpoint_.address, ")"),
          "give --interface NAME, or mend the network");
    }
  }

  [[nodiscard]] bool is_here(const std::string& address) const {
    return !interface_of(address, all_).address.empty() || core::is_loopback(address);
  }

  /// On the first machine; true if this one's coordinator serves the job.
  bool start_coordinator() {
    if (!is_here(endpoint_.address) || nodes_.node_rank.value_or(0) != 0) return false;
    const launch::RestartOptions& restart = options_.launch.restart;
    const Json config{
        {"address", endpoint_.address},
        {"port", endpoint_.port},
        {"key", key_},
        {"job", options_.launch.job_id.empty() ? made_up_job() : options_.launch.job_id},
        {"fewest", nodes_.fewest},
        {"most", nodes_.most},
        {"max_restarts", restart.limit},
        {"window_ms", restart.window ? restart.window->count() : -1},
        {"without_progress", restart.without_progress},
        {"join_ms", nodes_.join_timeout.count()},
        {"last_call_ms", nodes_.last_call.count()},
        {"lost_ms", nodes_.lost_after.count()}};
    coordinator_ =
        std::make_unique<core::Child>(core::ChildOptions{.command = {options_.coordinator_program},
                                                         .input = core::json_line(config),
                                                         .limit = std::chrono::hours(24 * 365)});
    if (coordinator_->wait_for("listening", kCoordinatorStart)) return true;
    coordinator_->signal(SIGKILL);
    const core::ChildResult result = coordinator_->wait();
    coordinator_.reset();
    const std::string words(core::trimmed(result.err));
    const bool taken = words.find("another program listens") != std::string::npos;
    // Two launchers on one host: the other one was first, and this is not said to be the first.
    if (taken && !nodes_.node_rank) return false;
    throw Error(Code::io, words.empty() ? "the coordinator did not start" : words,
                "give --rdzv-endpoint another port, and the same on all machines");
  }

  [[nodiscard]] std::string made_up_job() const {
    return text("job-", key_.substr(0, 8), "-",
                std::chrono::system_clock::now().time_since_epoch().count() / 1'000'000);
  }

  /// Asks until the plan is there, or the end.
  Json join() {
    const auto limit = Clock::now() + nodes_.join_timeout + nodes_.lost_after;
    bool said = false;
    while (true) {
      const std::optional<Json> answer = link_->ask("waiting", 0);
      if (answer) {
        const std::string phase = answer->value("phase", "");
        if (phase == "run" || phase == "end") return *answer;
      }
      if (!said && !answer) {
        say(Level::info,
            text("waiting for the coordinator at ", endpoint_.text(), ": ", link_->failure()));
        said = true;
      }
      if (Clock::now() >= limit) {
        throw Error(Code::timeout,
                    text("no plan from the coordinator at ", endpoint_.text(), " in ",
                         std::chrono::duration<double>(nodes_.join_timeout).count(),
                         " s: ", link_->failure()),
                    "start the launcher of the first machine, whose address --rdzv-endpoint names; "
                    "look at firewalls");
      }
      wait(kAskAgain);
    }
  }

  launch::Outcome run_round(const Json& answer, launch::StorePort& store) {
    const Json& plan = answer.at("plan");
    launch::LaunchOptions launch = options_.launch;
    launch.job_id = plan.value("job", "");
    job_ = launch.job_id;
    launch.placement = {.first_rank = plan.value("first_rank", 0),
                        .world_size = plan.value("world_size", 1),
                        .node_rank = plan.value("node_rank", 0),
                        .node_count = plan.value("node_count", 1),
                        .master_address = plan.value("master_address", ""),
                        .master_port = plan.value("master_port", 0),
                        .attempt = plan.value("attempt", 0)};
    launch.max_restarts_told = plan.value("max_restarts", 0);
    launch.restart.limit = 0;  // the coordinator decides
    launch.quiet = true;
    launch.companion = link_.get();
    set_interface(launch.extra);
    const launch::Placement& place = launch.placement;
    if (place.node_rank == 0) {
      launch.store = &store;
    } else {
      store = {};
    }
    say(Level::info,
        text("node ", place.node_rank, " of ", place.node_count, " (", host_name(), ", ",
             own_.address, "): ranks ", place.first_rank, " to ",
             place.first_rank + launch.ranks - 1, " of ", place.world_size, "; they meet at ",
             place.master_address, ":", place.master_port, " over ", transport_text(own_.name)));
    link_->begin_round(answer.value("round", 0));
    try {
      return launch::supervise(launch);
    } catch (const Error& error) {
      launch::Outcome outcome{.exit_code = launch::exit_code(error.code())};
      outcome.root_cause = launch::Failure{.host = host_name(),
                                           .exit_code = outcome.exit_code,
                                           .code = std::string(core::name(error.code())),
                                           .message = error.message(),
                                           .hint = error.hint()};
      return outcome;
    }
  }

  /// The chosen network, where the user has not said otherwise to Gloo and NCCL.
  void set_interface(core::EnvironmentMap& extra) const {
    if (own_.name.empty() || own_.name == "lo") return;
    if (core::value_or(variables_, "GLOO_SOCKET_IFNAME").empty())
      extra.emplace("GLOO_SOCKET_IFNAME", own_.name);
    if (!nodes_.interface.empty() && core::value_or(variables_, "NCCL_SOCKET_IFNAME").empty())
      extra.emplace("NCCL_SOCKET_IFNAME", own_.name);
  }

  /// Says how the ranks ended until all machines are through with the round; nothing if the
  /// coordinator is gone.
  std::optional<Json> leave_round(int round, const launch::Outcome& outcome) {
    while (true) {
      std::optional<Json> answer = link_->ask("ended", round, &outcome);
      if (answer) {
        const std::string phase = answer->value("phase", "");
        if (phase == "gather" || phase == "end") return answer;
      }
      if (link_->lost()) return std::nullopt;
      wait(kAskAgain);
    }
  }

  int end(const Json& answer) {
    const launch::Outcome outcome = outcome_from_json(answer.at("outcome"));
    const auto refused = answer.value("refused", std::uint64_t{0});
    if (coordinator_ && refused > 0) {
      say(Level::warning, text("refused ", refused, refused == 1 ? " request" : " requests",
                               " of strangers at ", endpoint_.text()));
    }
    const std::string why = answer.value("why", "");
    if (why.starts_with("not started again")) say(Level::warning, why);
    launch::report_outcome(
        outcome, answer.value("job", ""), answer.value("world_size", 0),
        {options_.launch.failure_file, core::value_or(variables_, "YOKE_FAILURE_FILE")});
    wait_for_coordinator();
    return outcome.exit_code;
  }

  /// The others hear of the end from it.
  void wait_for_coordinator() {
    if (coordinator_) static_cast<void>(coordinator_->wait_for("finished", kCoordinatorEnd));
  }

  /// The coordinator's machine is gone: what is known here is all there is.
  int alone(launch::Outcome outcome) {
    launch::Failure lost{
        .host = host_name(),
        .code = "peer_lost",
        .message = text("the coordinator at ", endpoint_.text(), " gave no answer for ",
                        std::chrono::duration<double>(nodes_.lost_after).count(), " s (",
                        link_->failure(), "); the ranks here were ended"),
        .hint = "look at the first machine and its launcher's last words"};
    if (outcome.root_cause) {
      outcome.follow_ups.push_back(std::move(lost));
    } else {
      outcome.root_cause = std::move(lost);
      outcome.exit_code = 1;
    }
    launch::report_outcome(
        outcome, job_, options_.launch.ranks,
        {options_.launch.failure_file, core::value_or(variables_, "YOKE_FAILURE_FILE")});
    return outcome.exit_code;
  }

  const RunNodeOptions& options_;
  const NodeOptions& nodes_;
  const core::EnvironmentMap& variables_;
  std::vector<Interface> all_;
  Endpoint endpoint_;
  Interface own_;
  std::string key_;
  std::string job_;
  std::unique_ptr<core::Child> coordinator_;
  std::unique_ptr<NodeLink> link_;
};

}  // namespace

int run_node(const RunNodeOptions& options, const core::EnvironmentMap& variables) {
  return NodeRun(options, variables).run();
}

}  // namespace yoke::cluster
