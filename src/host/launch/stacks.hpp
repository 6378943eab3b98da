#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "yoke/core/environment.hpp"

namespace yoke::launch {

// Where a process stands, as well as this machine can tell: Python's frames by py-spy, or by the
// faulthandler that yoke_telemetry.py has set up to write `python_stack`; the frames of each thread
// by gdb; at least each thread's name, state and kernel function. Takes at most about 20 s; call it
// beside the loop. The process is stopped while it is looked at, and goes on afterwards.
[[nodiscard]] std::string stack_of(pid_t pid, const std::filesystem::path& python_stack,
                                   const core::EnvironmentMap& variables);

// The state letter of a process; 'X' if there is none.
[[nodiscard]] char process_state(pid_t pid);

}  // namespace yoke::launch
