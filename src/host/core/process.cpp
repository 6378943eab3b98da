#include "yoke/core/process.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

namespace {

struct SignalName {
  int number;
  const char* name;
};

// sigabbrev_np() came with glibc 2.32; the portable front program runs on 2.28.
constexpr std::array kSignalNames{
    SignalName{SIGHUP, "SIGHUP"},   SignalName{SIGINT, "SIGINT"},
    SignalName{SIGQUIT, "SIGQUIT"}, SignalName{SIGILL, "SIGILL"},
    SignalName{SIGTRAP, "SIGTRAP"}, SignalName{SIGABRT, "SIGABRT"},
    SignalName{SIGBUS, "SIGBUS"},   SignalName{SIGFPE, "SIGFPE"},
    SignalName{SIGKILL, "SIGKILL"}, SignalName{SIGUSR1, "SIGUSR1"},
    SignalName{SIGSEGV, "SIGSEGV"}, SignalName{SIGUSR2, "SIGUSR2"},
    SignalName{SIGPIPE, "SIGPIPE"}, SignalName{SIGALRM, "SIGALRM"},
    SignalName{SIGTERM, "SIGTERM"}, SignalName{SIGSTKFLT, "SIGSTKFLT"},
    SignalName{SIGCHLD, "SIGCHLD"}, SignalName{SIGCONT, "SIGCONT"},
    SignalName{SIGSTOP, "SIGSTOP"}, SignalName{SIGTSTP, "SIGTSTP"},
    SignalName{SIGTTIN, "SIGTTIN"}, SignalName{SIGTTOU, "SIGTTOU"},
    SignalName{SIGURG, "SIGURG"},   SignalName{SIGXCPU, "SIGXCPU"},
    SignalName{SIGXFSZ, "SIGXFSZ"}, SignalName{SIGVTALRM, "SIGVTALRM"},
    SignalName{SIGPROF, "SIGPROF"}, SignalName{SIGWINCH, "SIGWINCH"},
    SignalName{SIGPOLL, "SIGPOLL"}, SignalName{SIGPWR, "SIGPWR"},
    SignalName{SIGSYS, "SIGSYS"},
};

}  // namespace

std::string signal_name(int signal) {
  for (const SignalName& one : kSignalNames) {
    if (one.number == signal) return one.name;
  }
  return text("signal ", signal);
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
