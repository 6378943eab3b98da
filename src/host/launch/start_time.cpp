#include "yoke/launch/start_time.hpp"

#include <unistd.h>

#include <chrono>
#include <ctime>

#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"

namespace yoke::launch {
namespace {

using core::Clock;
using std::chrono::nanoseconds;

nanoseconds since_boot() {
  std::timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}

Clock::Wall own_start_time() {
  const Clock::Wall now = core::SystemClock::instance().wall();
  const auto self = core::identify(::getpid());
  const long ticks_per_second = ::sysconf(_SC_CLK_TCK);
  if (!self || ticks_per_second <= 0) return now;
  const std::chrono::duration<double> started{static_cast<double>(self->start_time) /
                                              static_cast<double>(ticks_per_second)};
  const auto age = std::chrono::duration_cast<Clock::Wall::duration>(since_boot() - started);
  return now - age;
}

}  // namespace

Clock::Wall user_start_time(const core::EnvironmentMap& variables) {
  const auto said = core::parse_integer(core::value_or(variables, kStartTimeVariable));
  if (!said || *said <= 0) return own_start_time();
  return Clock::Wall(std::chrono::duration_cast<Clock::Wall::duration>(nanoseconds(*said)));
}

std::string start_time_value(core::Clock::Wall time) {
  return std::to_string(std::chrono::duration_cast<nanoseconds>(time.time_since_epoch()).count());
}

}  // namespace yoke::launch
