#pragma once

#include <array>
#include <csignal>
#include <optional>
#include <vector>

#include "yoke/core/descriptor.hpp"

namespace yoke::launch {

// Turns signals that are to be passed on into bytes in a pipe, while it lives; then the old
// handlers are back. A signal that the process ignores (nohup and SIGHUP) stays ignored. Requires:
// one at a time in a process.
class SignalRelay {
 public:
  SignalRelay();
  ~SignalRelay();
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;

  [[nodiscard]] int descriptor() const noexcept { return read_.get(); }

  // The next signal that came, if any.
  [[nodiscard]] std::optional<int> next() noexcept;

 private:
  struct Replaced {
    int signal;
    struct sigaction before;
  };

  core::Descriptor read_;
  core::Descriptor write_;
  std::vector<Replaced> replaced_;
};

// Whether the signal asks to end (SIGUSR1 and SIGUSR2 are the program's own).
[[nodiscard]] bool asks_to_end(int signal) noexcept;

// Whether SignalRelay takes it.
[[nodiscard]] bool is_passed_on(int signal) noexcept;

}  // namespace yoke::launch
