#include "yoke/core/clock.hpp"

namespace yoke::core {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr seconds kFakeStart{1'000};
constexpr seconds kFakeWallStart{1'735'689'600};  // 2025-01-01 00:00 UTC

}  // namespace

const SystemClock& SystemClock::instance() noexcept {
  static const SystemClock clock;
  return clock;
}

Clock::Monotonic SystemClock::now() const noexcept { return std::chrono::steady_clock::now(); }

Clock::Wall SystemClock::wall() const noexcept { return std::chrono::system_clock::now(); }

Clock::Monotonic FakeClock::now() const noexcept {
  return Monotonic(kFakeStart + nanoseconds(passed_.load()));
}

Clock::Wall FakeClock::wall() const noexcept {
  const nanoseconds since_epoch = kFakeWallStart + nanoseconds(passed_.load());
  return Wall(std::chrono::duration_cast<Wall::duration>(since_epoch));
}

void FakeClock::advance(nanoseconds by) noexcept { passed_.fetch_add(by.count()); }

}  // namespace yoke::core
