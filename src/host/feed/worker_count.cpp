#include "yoke/feed/worker_count.hpp"

#include <algorithm>

namespace yoke::feed {

unsigned WorkerCount::update(const Window& window) {
  constexpr int kToleratedPart = 100;
  constexpr int kIdleWindows = 4;
  if (window.waited * kToleratedPart > window.elapsed) {
    idle_windows_ = 0;
    least_ = std::min(most_, count_ + 1);
    count_ = std::min(most_, count_ + std::max(1U, count_ / 4));
  } else if (!window.always_full) {
    idle_windows_ = 0;
  } else if (++idle_windows_ == kIdleWindows) {
    idle_windows_ = 0;
    count_ = std::max(least_, count_ - 1);
  }
  return count_;
}

}  // namespace yoke::feed
