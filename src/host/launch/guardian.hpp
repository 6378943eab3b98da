#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "yoke/core/descriptor.hpp"

namespace yoke::launch {

// Note [Guardian]
// Launcher -> guardian -> ranks. The guardian is a fork of the launcher that never execs. It is the
// parent of the ranks and a child subreaper, so whatever the ranks start stays below it in the
// process tree, also after a change of session and the death of the parents between. It holds one
// end of a socket pair; when the other end closes, the launcher is dead, whatever killed it, and
// the guardian ends everything. When the guardian itself is killed, the death signal ends the
// ranks, and the launcher, a subreaper too, ends the rest. Only both killed at one moment leaves
// grandchildren behind.
// It says nothing and decides nothing: it reports each end and carries out orders, so it needs no
// lock of the process that it was forked from.

// All that one rank's process is made of, ready before the fork.
struct RankProgram {
  std::string file{};
  std::vector<std::string> arguments{};
  std::vector<std::string> variables{};  // NAME=value
  int kept_descriptor = -1;              // stays open across exec
  int out = -1;  // in place of standard output and error; -1: the launcher's own
  int err = -1;
  std::vector<int> cores{};  // that it may run on; empty: all of the launcher's
};

// Launcher to guardian.
struct Order {
  enum class Kind : std::int32_t { pass_signal, stop, kill };
  Kind kind;
  std::int32_t signal = 0;  // pass_signal
  std::int64_t grace_ms =
      0;  // stop: from SIGTERM to SIGKILL; pass_signal: for what ranks leave behind
};

// Guardian to launcher.
struct Event {
  enum class Kind : std::int32_t { started, not_started, ended, stuck, all_gone };
  Kind kind;
  std::int32_t rank = -1;
  std::int32_t status = 0;   // ended: as from waitpid; not_started: errno; started, stuck: the pid
  std::int32_t count = 0;    // all_gone: processes that not even SIGKILL ended
  std::int32_t swept = 0;    // all_gone: processes that ranks had left behind
  std::int64_t time_ns = 0;  // CLOCK_REALTIME
};

struct GuardianOptions {
  std::vector<RankProgram> ranks{};
  std::chrono::milliseconds grace{0};  // when the launcher is gone, and for what ranks leave behind
  std::function<void()> when_abandoned{};  // runs in the guardian, at its end, if the launcher died
  std::vector<int> close_in_guardian{};    // the launcher's ends of pipes
  sigset_t rank_signal_mask{};             // which ranks start with
};

// The launcher's side.
class Guardian {
 public:
  // Forks; returns in the launcher only. Signals are blocked around the fork. Errors: io.
  explicit Guardian(const GuardianOptions& options);
  ~Guardian();  // closes the socket, upon which the guardian ends everything, and waits for its end
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  void order(const Order& order) noexcept;

  // The next event; false once the guardian has gone. Call when descriptor() is readable.
  [[nodiscard]] bool receive(Event& event) noexcept;

 private:
  core::Descriptor socket_;
  pid_t pid_ = -1;
};

}  // namespace yoke::launch
