#pragma once

#include <atomic>
#include <chrono>

namespace yoke::core {

/// Tells the time; code that has limits borrows one, so that its tests need no waiting.
///
///   const auto limit = clock.now() + 30s;
///   while (!arrived()) if (clock.now() > limit) throw Error(Code::timeout, ...);
///
/// Threads: any.
class Clock {
 public:
  using Monotonic = std::chrono::steady_clock::time_point;
  using Wall = std::chrono::system_clock::time_point;

  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  /// Never goes back; the same for all processes of a host, so that stamps of two ranks compare.
  [[nodiscard]] virtual Monotonic now() const noexcept = 0;

  /// The time of day, which may jump.
  [[nodiscard]] virtual Wall wall() const noexcept = 0;
};

/// The system's clocks.
class SystemClock final : public Clock {
 public:
  /// One for the whole process, for default arguments.
  [[nodiscard]] static const SystemClock& instance() noexcept;

  [[nodiscard]] Monotonic now() const noexcept override;
  [[nodiscard]] Wall wall() const noexcept override;
};

/// Stands still until told; for tests. Starts at 1000 s, and on the wall at 2025-01-01 00:00 UTC.
class FakeClock final : public Clock {
 public:
  [[nodiscard]] Monotonic now() const noexcept override;
  [[nodiscard]] Wall wall() const noexcept override;

  void advance(std::chrono::nanoseconds by) noexcept;

 private:
  std::atomic<std::chrono::nanoseconds::rep> passed_{0};
};

}  // namespace yoke::core
