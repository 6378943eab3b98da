#pragma once

#include <chrono>

namespace yoke::feed {

/// How many of a loader's threads should work: all of them at first, then as few as keep its reader
/// from waiting. A core that decodes in vain is missing where a step is prepared.
///
///   WorkerCount count(8);
///   ring.set_active(count.update({.elapsed = ..., .waited = ..., .always_full = ...}));
///
/// One thread is taken away after four windows in a row in which all slots were full whenever the
/// reader came; a quarter more, and at least one, comes back as soon as the reader waited for more
/// than a hundredth of a window, and from then on the count never falls to where that happened.
///
/// Threads: a value; one at a time. Depends on nothing but the windows.
class WorkerCount {
 public:
  struct Window {
    std::chrono::nanoseconds elapsed{0};
    std::chrono::nanoseconds waited{0};  ///< by the reader
    bool always_full = false;            ///< whenever the reader came
  };

  /// `most`: 1 or more.
  explicit WorkerCount(unsigned most) : most_(most), count_(most) {}

  unsigned update(const Window& window);

  [[nodiscard]] unsigned value() const noexcept { return count_; }

 private:
  unsigned most_;
  unsigned count_;
  unsigned least_ = 1;
  int idle_windows_ = 0;
};

}  // namespace yoke::feed
