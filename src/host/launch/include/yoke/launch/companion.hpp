#pragma once

#include <chrono>
#include <vector>

namespace yoke::launch {

/// Whoever else has a say in a job beside this machine's launcher: the job's other machines.
/// supervise() calls it from its loop, so it must not block.
class Companion {
 public:
  Companion() = default;
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;
  virtual ~Companion() = default;

  struct News {
    bool failed{false};          ///< a rank of this machine has failed
    std::vector<int> signals{};  ///< that the user sent to this launcher since the last call
  };
  struct Word {
    bool stop{false};            ///< end the ranks of this machine
    std::vector<int> signals{};  ///< to pass on to the ranks of this machine
  };

  /// To be polled for `events()` beside the ranks; -1: nothing to wait for.
  [[nodiscard]] virtual int descriptor() const noexcept = 0;
  [[nodiscard]] virtual short events() const noexcept = 0;

  /// Called when the descriptor is ready, when there is news, and at least every `interval()`.
  virtual Word talk(const News& news) = 0;
  [[nodiscard]] virtual std::chrono::milliseconds interval() const noexcept = 0;
};

}  // namespace yoke::launch
