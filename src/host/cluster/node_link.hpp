#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "yoke/cluster/http_call.hpp"
#include "yoke/core/json.hpp"
#include "yoke/launch/companion.hpp"
#include "yoke/launch/failure.hpp"

namespace yoke::cluster {

// What this machine tells the coordinator about itself.
struct NodeFacts {
  std::string host{};
  std::string address{};
  int ranks = 1;
  int fewest = 1;
  int most = 1;
  std::optional<int> node_rank{};
  bool hosts_coordinator = false;
};

// This machine's line to the coordinator: asks and answers, one message at a time.
class NodeLink final : public launch::Companion {
 public:
  NodeLink(Endpoint endpoint, std::string key, NodeFacts facts,
           std::chrono::milliseconds lost_after);

  // A message and its answer; nothing if none came (failure() says why). Blocks for up to 2 s.
  // Errors: invalid_argument, unsupported where the coordinator refuses this machine.
  [[nodiscard]] std::optional<core::Json> ask(const std::string& state, int round,
                                              const launch::Outcome* outcome = nullptr);
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }

  void store_port(int port) noexcept { store_port_ = port; }

  // The round whose ranks run from now on.
  void begin_round(int round);

  // Nothing was heard for too long.
  [[nodiscard]] bool lost() const;

  // Of launch::Companion, while the ranks run.
  [[nodiscard]] int descriptor() const noexcept override;
  [[nodiscard]] short events() const noexcept override;
  Word talk(const News& news) override;
  [[nodiscard]] std::chrono::milliseconds interval() const noexcept override;

 private:
  [[nodiscard]] core::Json message(const std::string& state, int round);
  [[nodiscard]] std::string header_for(const std::string& body) const;
  void begin_call(const std::string& body);
  [[nodiscard]] std::optional<core::Json> result_of(const HttpCall& call);
  void take_signals(const core::Json& answer);

  Endpoint endpoint_;
  std::string key_;
  NodeFacts facts_;
  std::chrono::milliseconds lost_after_;
  std::string id_;
  std::uint64_t count_ = 0;
  int store_port_ = 0;
  int round_ = 0;
  std::size_t signals_seen_ = 0;
  bool failed_ = false;
  bool told_failure_ = false;
  std::vector<int> to_tell_{};  // signals of this machine of which the coordinator may not know
  std::ptrdiff_t told_ = 0;     // of them, those in the call under way
  std::vector<int> to_pass_{};  // signals of the others
  bool stop_ = false;
  std::optional<HttpCall> call_{};
  std::chrono::steady_clock::time_point last_heard_{};
  std::chrono::steady_clock::time_point last_call_{};
  std::string failure_{};
};

}  // namespace yoke::cluster
