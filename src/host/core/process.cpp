#include "yoke/core/process.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "process_identity.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::core {
namespace {

namespace fs = std::filesystem;

struct Stat {
  pid_t parent{0};
  char state{'X'};
  std::uint64_t start_time{0};
};

/// "pid (name) state ppid ...": the name may hold spaces and brackets, so fields count from the
/// last bracket.
std::optional<Stat> read_stat(pid_t pid) try {
  const std::string line = read_file(text("/proc/", pid, "/stat"));
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  const std::vector<std::string> fields = split(std::string_view(line).substr(name_end + 2), ' ');
  constexpr std::size_t kStartTime = 19;  // field 22 of the line
  if (fields.size() <= kStartTime || fields[0].empty()) return std::nullopt;
  Stat stat;
  stat.state = fields[0].front();
  stat.parent = static_cast<pid_t>(parse_integer(fields[1]).value_or(0));
  stat.start_time = static_cast<std::uint64_t>(parse_integer(fields[kStartTime]).value_or(0));
  return stat;
} catch (const Error&) {
  return std::nullopt;  // it has ended
}

bool has_ended(char state) { return state == 'Z' || state == 'X'; }

std::vector<pid_t> all_processes() {
  std::vector<pid_t> pids;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    if (const auto pid = parse_integer(entry->path().filename().string()))
      pids.push_back(static_cast<pid_t>(*pid));
  }
  return pids;
}

/// The first line of a control file, or nothing where there is no such controller.
std::string control_value(const fs::path& path) try {
  return std::string(trimmed(read_file(path)));
} catch (const Error&) {
  return {};
}

/// Processors' worth of time that control groups leave us; nothing without a limit.
std::optional<double> quota_of(const std::string& quota_text, const std::string& period_text) {
  const auto quota = parse_integer(quota_text);
  const auto period = parse_integer(period_text);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

/// Our group's folder below `root`, then its parents up to `root`: each may set a limit.
template <class Visit>
void visit_groups(const fs::path& root, const std::string& group, Visit visit) {
  fs::path folder = root / fs::path(group).relative_path();
  while (folder.string().size() >= root.string().size()) {
    visit(folder);
    if (folder == root) break;
    folder = folder.parent_path();
  }
}

std::optional<double> control_group_cores() {
  std::optional<double> least;
  const auto take = [&](std::optional<double> cores) {
    if (cores && (!least || *cores < *least)) least = cores;
  };
  for (const std::string& line : split(control_value("/proc/self/cgroup"), '\n')) {
    const std::vector<std::string> fields = split(line, ':');  // number:controllers:group
    if (fields.size() < 3) continue;
    const std::vector<std::string> controllers = split(fields[1], ',');
    if (fields[0] == "0" && fields[1].empty()) {
      visit_groups("/sys/fs/cgroup", fields[2], [&](const fs::path& folder) {
        const std::vector<std::string> parts = split(control_value(folder / "cpu.max"), ' ');
        if (parts.size() == 2) take(quota_of(parts[0], parts[1]));
      });
    } else if (std::find(controllers.begin(), controllers.end(), "cpu") != controllers.end()) {
      visit_groups("/sys/fs/cgroup/cpu", fields[2], [&](const fs::path& folder) {
        take(quota_of(control_value(folder / "cpu.cfs_quota_us"),
                      control_value(folder / "cpu.cfs_period_us")));
      });
    }
  }
  return least;
}

int affinity_cores() {
  // The kernel refuses a mask shorter than its own, so grow it until it fits.
  for (std::size_t processors = 1024; processors <= (std::size_t{1} << 20); processors *= 4) {
    cpu_set_t* mask = CPU_ALLOC(processors);
    if (mask == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(processors);
    const bool known = ::sched_getaffinity(0, bytes, mask) == 0;
    const int count = known ? CPU_COUNT_S(bytes, mask) : 0;
    CPU_FREE(mask);
    if (known) return std::max(1, count);
    if (errno != EINVAL) break;
  }
  return std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace

std::optional<ProcessId> identify(pid_t pid) {
  const auto stat = read_stat(pid);
  if (!stat) return std::nullopt;
  return ProcessId{pid, stat->start_time};
}

bool is_alive(const ProcessId& process) {
  const auto stat = read_stat(process.pid);
  return stat && stat->start_time == process.start_time && !has_ended(stat->state);
}

std::vector<ProcessId> descendants(pid_t root) {
  std::multimap<pid_t, std::pair<ProcessId, char>> by_parent;
  for (const pid_t pid : all_processes()) {
    if (const auto stat = read_stat(pid)) {
      by_parent.emplace(stat->parent, std::pair{ProcessId{pid, stat->start_time}, stat->state});
    }
  }
  std::vector<ProcessId> found;
  std::vector<pid_t> pending{root};
  while (!pending.empty()) {
    const pid_t parent = pending.back();
    pending.pop_back();
    const auto [begin, end] = by_parent.equal_range(parent);
    for (auto child = begin; child != end; ++child) {
      const auto& [process, state] = child->second;
      pending.push_back(process.pid);  // a zombie may have living children for a moment
      if (!has_ended(state)) found.push_back(process);
    }
  }
  return found;
}

bool send_signal(const ProcessId& process, int signal) noexcept try {
#ifdef SYS_pidfd_open
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0));
  if (handle >= 0) {
    // The handle pins the process, so the check that follows cannot be outrun.
    const bool same = identify(process.pid) == process;
    const bool sent = same && ::syscall(SYS_pidfd_send_signal, handle, signal, nullptr, 0) == 0;
    ::close(handle);
    return sent;
  }
  if (errno != ENOSYS) return false;
#endif
  return identify(process.pid) == process && ::kill(process.pid, signal) == 0;
} catch (...) {
  return false;  // out of memory while reading /proc
}

std::string signal_name(int signal) {
  if (const char* name = ::sigabbrev_np(signal)) return text("SIG", name);
  return text("signal ", signal);
}

int usable_cores() {
  const int allowed = affinity_cores();
  const auto quota = control_group_cores();
  if (!quota) return allowed;
  const int paid =
      static_cast<int>(*quota) + (*quota > static_cast<double>(static_cast<int>(*quota)) ? 1 : 0);
  return std::clamp(paid, 1, allowed);
}

std::optional<std::string> find_program(const std::string& program,
                                        const EnvironmentMap& variables) {
  const auto runnable = [](const std::string& path) {
    std::error_code error;
    return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
  };
  if (program.find('/') != std::string::npos)
    return runnable(program) ? std::optional(program) : std::nullopt;
  if (program.empty()) return std::nullopt;
  for (const std::string& folder :
       split(value_or(variables, "PATH", "/usr/local/bin:/usr/bin:/bin"), ':')) {
    const std::string path = (folder.empty() ? "." : folder) + "/" + program;
    if (runnable(path)) return path;
  }
  return std::nullopt;
}

}  // namespace yoke::core
