#pragma once

#include <poll.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"

namespace yoke::launch {

// Living processes whose environment names the job.
inline std::vector<pid_t> processes_of_job(const std::string& job_id) {
  std::vector<pid_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const auto pid = core::parse_integer(entry->path().filename().string());
    if (!pid) continue;
    try {
      const std::string variables = core::read_file(entry->path() / "environ");
      const auto process = core::identify(static_cast<pid_t>(*pid));
      if (("\0" + variables).find("YOKE_JOB_ID=" + job_id + std::string(1, '\0')) ==
          std::string::npos)
        continue;
      if (process && core::is_alive(*process)) found.push_back(static_cast<pid_t>(*pid));
    } catch (const Error&) {
      // it has ended, or is another user's
    }
  }
  return found;
}

// Waits until `condition` holds, looking every 10 ms; false at the limit.
template <class Condition>
bool eventually(std::chrono::milliseconds limit, Condition condition) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    ::poll(nullptr, 0, 10);
  }
  return true;
}

}  // namespace yoke::launch
