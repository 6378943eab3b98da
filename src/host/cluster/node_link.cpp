#include "node_link.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <random>
#include <utility>

#include "yoke/cluster/coordinator.hpp"
#include "yoke/cluster/message.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cluster {
namespace {

using core::Json;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kCallLimit{2'000};
constexpr milliseconds kInterval{250};

std::string made_up_id() {
  std::random_device entropy;
  std::array<char, 24> out{};
  std::snprintf(out.data(), out.size(), "%08x%08x", entropy(), entropy());
  return out.data();
}

[[noreturn]] void refuse(const Json& answer) {
  const std::string code = answer.value("code", "invalid_argument");
  throw Error(code == "unsupported" ? Code::unsupported : Code::invalid_argument,
              answer.value("message", "the coordinator refuses this machine"),
              answer.value("hint", ""));
}

}  // namespace

NodeLink::NodeLink(Endpoint endpoint, std::string key, NodeFacts facts, milliseconds lost_after)
    : endpoint_(std::move(endpoint)),
      key_(std::move(key)),
      facts_(std::move(facts)),
      lost_after_(lost_after),
      id_(made_up_id()),
      last_heard_(Clock::now()) {}

Json NodeLink::message(const std::string& state, int round) {
  Json out{{"protocol", kProtocol},
           {"agent", id_},
           {"count", ++count_},
           {"host", facts_.host},
           {"pid", ::getpid()},
           {"address", facts_.address},
           {"ranks", facts_.ranks},
           {"fewest", facts_.fewest},
           {"most", facts_.most},
           {"node_rank", facts_.node_rank.value_or(-1)},
           {"state", state},
           {"round", round},
           {"store_port", store_port_},
           {"hosts_coordinator", facts_.hosts_coordinator},
           {"failed", failed_},
           {"signals_seen", signals_seen_}};
  return out;
}

std::string NodeLink::header_for(const std::string& body) const {
  return core::text(kMacHeader, ": ", mac_of(key_, Direction::request, body), "\r\n");
}

/// The answer of a call that is done, if it is one to our last message.
std::optional<Json> NodeLink::result_of(const HttpCall& call) {
  if (call.status() == 403) {
    throw Error(Code::invalid_argument,
                core::text("the coordinator at ", endpoint_.text(),
                           " does not know this machine: its secret or --rdzv-id differs"),
                "set the same YOKE_SECRET on all machines, or copy the first one's secret file");
  }
  if (call.status() != 200) {
    failure_ = call.status() == 0 ? call.failure() : core::text("HTTP status ", call.status());
    return std::nullopt;
  }
  if (!is_authentic(key_, Direction::answer, call.body(), call.header(kMacHeader))) {
    failure_ = "the answer is not the coordinator's";
    return std::nullopt;
  }
  Json answer = Json::parse(call.body(), nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) return std::nullopt;
  if (answer.value("phase", "") == "refused") refuse(answer);
  if (answer.value("agent", "") != id_ || answer.value("count", std::uint64_t{0}) != count_) {
    failure_ = "the answer is one to another question";
    return std::nullopt;
  }
  last_heard_ = Clock::now();
  take_signals(answer);
  return answer;
}

void NodeLink::take_signals(const Json& answer) {
  signals_seen_ = answer.value("signals_seen", signals_seen_);
  for (const int signal : answer.value("signals", std::vector<int>{})) to_pass_.push_back(signal);
}

std::optional<Json> NodeLink::ask(const std::string& state, int round,
                                  const launch::Outcome* outcome) {
  call_.reset();
  Json out = message(state, round);
  if (outcome != nullptr) out["outcome"] = outcome_to_json(*outcome);
  out["signals"] = to_tell_;
  const std::string body = core::json_line(out);
  HttpCall call(endpoint_, kPath, header_for(body), body, kCallLimit);
  call.wait();
  std::optional<Json> answer = result_of(call);
  if (answer) to_tell_.clear();
  return answer;
}

void NodeLink::begin_round(int round) {
  round_ = round;
  failed_ = told_failure_ = stop_ = false;
  to_tell_.clear();
  told_ = 0;
  last_heard_ = Clock::now();
}

bool NodeLink::lost() const { return Clock::now() - last_heard_ > lost_after_; }

int NodeLink::descriptor() const noexcept { return call_ ? call_->descriptor() : -1; }

short NodeLink::events() const noexcept { return call_ ? call_->events() : short{0}; }

milliseconds NodeLink::interval() const noexcept { return kInterval; }

void NodeLink::begin_call(const std::string& body) {
  last_call_ = Clock::now();
  call_.emplace(endpoint_, kPath, header_for(body), body, kCallLimit);
}

launch::Companion::Word NodeLink::talk(const News& news) {
  failed_ = failed_ || news.failed;
  to_tell_.insert(to_tell_.end(), news.signals.begin(), news.signals.end());
  if (call_) call_->move();
  if (call_ && call_->done()) {
    std::optional<Json> answer;
    try {
      answer = result_of(*call_);
    } catch (const Error& error) {
      failure_ = error.message();
      stop_ = true;
    }
    call_.reset();
    if (answer) {
      to_tell_.erase(to_tell_.begin(), to_tell_.begin() + told_);
      stop_ = stop_ || answer->value("phase", "") != "run" || answer->value("round", 0) != round_;
    }
  }
  const bool news_waits = !to_tell_.empty() || failed_ != told_failure_;
  if (!call_ && (news_waits || Clock::now() - last_call_ >= kInterval)) {
    Json out = message("running", round_);
    // Kept until the answer is here: the ranks may end, and the call with them, before that.
    out["signals"] = to_tell_;
    told_ = static_cast<std::ptrdiff_t>(to_tell_.size());
    told_failure_ = failed_;
    begin_call(core::json_line(out));
  }
  return {.stop = stop_ || lost(), .signals = std::exchange(to_pass_, {})};
}

}  // namespace yoke::cluster
