#include "yoke/train/stop_signals.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::train {
namespace {

struct Name {
  std::string_view word;
  int signal;
};

constexpr std::array<Name, 6> kNames{{{"HUP", SIGHUP},
                                      {"INT", SIGINT},
                                      {"QUIT", SIGQUIT},
                                      {"TERM", SIGTERM},
                                      {"USR1", SIGUSR1},
                                      {"USR2", SIGUSR2}}};

std::atomic<int> first{0};
static_assert(std::atomic<int>::is_always_lock_free);  // the handler writes it

void take(int signal) {
  int none = 0;
  first.compare_exchange_strong(none, signal);
}

int signal_of(const std::string& name) {
  const std::string_view word =
      name.starts_with("SIG") ? std::string_view(name).substr(3) : std::string_view(name);
  const auto* found =
      std::find_if(kNames.begin(), kNames.end(), [&](const Name& one) { return one.word == word; });
  if (found != kNames.end()) return found->signal;
  throw Error(Code::invalid_argument, core::text("stop signal ", name, ": unknown"),
              "known: HUP, INT, QUIT, TERM, USR1, USR2");
}

}  // namespace

StopSignals::StopSignals(const std::vector<std::string>& names) {
  first = 0;
  for (const std::string& name : names) {
    const int signal = signal_of(name);
    struct sigaction before{};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;
    struct sigaction action{};
    action.sa_handler = take;
    action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
    ::sigaction(signal, &action, nullptr);
    before_.emplace_back(signal, before);
  }
}

StopSignals::~StopSignals() {
  for (const auto& [signal, before] : before_) ::sigaction(signal, &before, nullptr);
}

int StopSignals::told() noexcept { return first.load(); }

}  // namespace yoke::train
