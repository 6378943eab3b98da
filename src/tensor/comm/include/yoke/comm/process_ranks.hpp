#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "yoke/comm/world.hpp"

namespace yoke::comm {

struct ProcessRanksOptions {
  std::string backend = "auto";
  std::chrono::milliseconds timeout{60'000};  ///< for each collective
  bool on_cards = false;  ///< rank r on card r; the caller must not have touched a card
};

/// Runs `rank_main` in `size` forked processes of this host, each with a World of its own. For
/// tests that need real processes. What a rank returns, or the text of what it throws, comes back,
/// "" for all well; a rank that died is "died by signal N" or "exited with N".
///
/// Threads: the caller must not have run parallel work of torch before: a forked child has none of
/// its threads.
[[nodiscard]] std::vector<std::string> run_process_ranks(
    int size, const ProcessRanksOptions& options,
    const std::function<std::string(World&)>& rank_main);

/// A listening socket on a free loopback port, as a launcher hands it to rank 0. Owns the
/// descriptor; TCPStore of rank 0 closes its own copy, so hand it a duplicate or fork.
class LoopbackPort {
 public:
  LoopbackPort();  ///< Errors: io
  ~LoopbackPort();
  LoopbackPort(const LoopbackPort&) = delete;
  LoopbackPort& operator=(const LoopbackPort&) = delete;

  [[nodiscard]] int number() const noexcept { return number_; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

 private:
  int descriptor_ = -1;
  int number_ = 0;
};

}  // namespace yoke::comm
