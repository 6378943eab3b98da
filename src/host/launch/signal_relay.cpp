#include "signal_relay.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::launch {
namespace {

constexpr std::array<int, 6> kPassedOn{SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

std::atomic<int> write_end{-1};
static_assert(std::atomic<int>::is_always_lock_free);  // the handler reads it

void take(int signal) {
  const int before = errno;
  const auto byte = static_cast<unsigned char>(signal);
  [[maybe_unused]] const ssize_t sent =
      ::write(write_end.load(), &byte, 1);  // a full pipe holds signals enough
  errno = before;
}

}  // namespace

bool asks_to_end(int signal) noexcept {
  return is_passed_on(signal) && signal != SIGUSR1 && signal != SIGUSR2;
}

bool is_passed_on(int signal) noexcept {
  return std::find(kPassedOn.begin(), kPassedOn.end(), signal) != kPassedOn.end();
}

SignalRelay::SignalRelay() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    throw Error(Code::io,
                core::text("start ranks: no pipe: ", std::generic_category().message(errno)));
  }
  read_ = core::Descriptor(ends[0]);
  write_ = core::Descriptor(ends[1]);
  write_end = write_.get();
  for (const int signal : kPassedOn) {
    struct sigaction before{};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;
    struct sigaction action{};
    action.sa_handler = take;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
    replaced_.push_back({signal, before});
  }
}

SignalRelay::~SignalRelay() {
  for (const Replaced& one : replaced_) ::sigaction(one.signal, &one.before, nullptr);
  write_end = -1;
}

std::optional<int> SignalRelay::next() noexcept {
  unsigned char byte = 0;
  if (::read(read_.get(), &byte, 1) != 1) return std::nullopt;
  return byte;
}

}  // namespace yoke::launch
