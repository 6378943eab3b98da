#include "subreaper.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::launch {
namespace {

using Clock = std::chrono::steady_clock;

// For a process that hangs in the kernel.
constexpr std::chrono::seconds kSweepLimit{3};

/// Whether the variables that the process was started with name the job.
bool names_job(pid_t pid, const std::string& job_id) try {
  const std::vector<std::string> variables =
      core::split(core::read_file(core::text("/proc/", pid, "/environ")), '\0');
  return std::find(variables.begin(), variables.end(), "YOKE_JOB_ID=" + job_id) != variables.end();
} catch (const Error&) {
  return false;  // it has ended, or is not ours to read
}

}  // namespace

Subreaper::Subreaper(std::string job_id) : job_id_(std::move(job_id)) {
  ::prctl(PR_GET_CHILD_SUBREAPER, &before_);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  existing_ = core::descendants(::getpid());
}

Subreaper::~Subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, before_); }

bool Subreaper::is_ours(const core::ProcessId& process) const {
  if (existing_.empty()) return true;
  const bool is_old = std::find(existing_.begin(), existing_.end(), process) != existing_.end();
  return !is_old && names_job(process.pid, job_id_);
}

void Subreaper::sweep() const {
  const auto limit = Clock::now() + kSweepLimit;
  while (Clock::now() < limit) {
    std::vector<core::ProcessId> left = core::descendants(::getpid());
    std::erase_if(left, [&](const core::ProcessId& process) { return !is_ours(process); });
    if (left.empty()) return;
    for (const core::ProcessId& process : left) core::send_signal(process, SIGKILL);
    for (const core::ProcessId& process : left) ::waitpid(process.pid, nullptr, WNOHANG);
    ::poll(nullptr, 0, 10);
  }
}

}  // namespace yoke::launch
