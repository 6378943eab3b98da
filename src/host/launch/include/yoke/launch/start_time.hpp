#pragma once

#include <string>

#include "yoke/core/clock.hpp"
#include "yoke/core/environment.hpp"

namespace yoke::launch {

/// The variable by which the process that the user started tells its ranks when that was:
/// nanoseconds since 1970. supervise() sets it where it is not set yet.
inline constexpr const char* kStartTimeVariable = "YOKE_START_TIME";

/// When the user started the program: what the launcher said, else when this process was started
/// (to 10 ms; exec() does not change it).
[[nodiscard]] core::Clock::Wall user_start_time(const core::EnvironmentMap& variables);

/// `time` as kStartTimeVariable holds it.
[[nodiscard]] std::string start_time_value(core::Clock::Wall time);

}  // namespace yoke::launch
