#include "stacks.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <system_error>
#include <vector>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"

namespace yoke::launch {
namespace {

namespace fs = std::filesystem;
using core::text;
using std::chrono::milliseconds;

constexpr milliseconds kGdbLimit{12'000};
constexpr milliseconds kPySpyLimit{6'000};
constexpr int kHandlerTries = 40;  // of 50 ms
constexpr std::size_t kMostThreads = 32;
constexpr std::size_t kMostLines = 120;

std::string read_or_nothing(const fs::path& path) {
  try {
    return std::string(core::trimmed(core::read_file(path)));
  } catch (const Error&) {
    return {};
  }
}

/// What the kernel says without a debugger.
std::string threads_of(pid_t pid) {
  std::string out;
  std::size_t count = 0;
  std::error_code error;
  for (fs::directory_iterator entry(text("/proc/", pid, "/task"), error), end;
       !error && entry != end && count < kMostThreads; entry.increment(error), ++count) {
    const fs::path task = entry->path();
    std::string state;
    for (const std::string& line : core::split(read_or_nothing(task / "status"), '\n')) {
      if (line.starts_with("State:")) state = core::trimmed(line.substr(6));
    }
    const std::string waits = read_or_nothing(task / "wchan");
    out += text("thread ", task.filename().string(), " ", read_or_nothing(task / "comm"), ": ",
                state, waits.empty() || waits == "0" ? "" : ", in " + waits, "\n");
  }
  return out;
}

/// gdb's frames without its remarks on files and symbols.
std::string gdb_frames(const std::string& words) {
  std::string out;
  std::size_t lines = 0;
  for (const std::string& line : core::split(words, '\n')) {
    const bool wanted = line.starts_with("#") || line.starts_with("Thread ");
    if (wanted && lines++ < kMostLines) out += line + "\n";
  }
  return out;
}

std::string by_gdb(pid_t pid, const core::EnvironmentMap& variables) {
  if (!core::find_program("gdb", variables)) return {};
  core::EnvironmentMap quiet = variables;
  quiet.erase("DEBUGINFOD_URLS");
  const core::ChildResult result =
      core::run_child({.command = {"gdb", "-p", std::to_string(pid), "-batch", "-nx", "-ex",
                                   "set pagination off", "-ex", "thread apply all bt 24"},
                       .variables = quiet,
                       .limit = kGdbLimit});
  return gdb_frames(result.out);
}

std::string by_py_spy(pid_t pid, const core::EnvironmentMap& variables) {
  if (!core::find_program("py-spy", variables)) return {};
  const core::ChildResult result =
      core::run_child({.command = {"py-spy", "dump", "--nonblocking", "--pid", std::to_string(pid)},
                       .variables = variables,
                       .limit = kPySpyLimit});
  return result.succeeded() ? result.out : std::string{};
}

/// Asks the handler that yoke_telemetry.py has registered. The file is there, empty, only if it
/// has, so nobody else gets a signal that would end it.
std::string by_faulthandler(pid_t pid, const fs::path& file) {
  std::error_code error;
  if (!fs::exists(file, error)) return {};
  const auto process = core::identify(pid);
  const auto before = fs::file_size(file, error);
  if (!process || !core::send_signal(*process, SIGRTMIN + 6)) return {};
  for (int i = 0; i < kHandlerTries; ++i) {
    ::poll(nullptr, 0, 50);
    const std::string words = read_or_nothing(file);
    if (words.size() > before) return words;
  }
  return read_or_nothing(file);
}

}  // namespace

char process_state(pid_t pid) {
  const std::string stat = read_or_nothing(text("/proc/", pid, "/stat"));
  const std::size_t bracket = stat.rfind(')');
  return bracket == std::string::npos || bracket + 2 >= stat.size() ? 'X' : stat[bracket + 2];
}

std::string stack_of(pid_t pid, const fs::path& python_stack,
                     const core::EnvironmentMap& variables) {
  std::string out = threads_of(pid);
  try {
    std::string python = by_py_spy(pid, variables);
    const bool runs = process_state(pid) != 'T';
    if (python.empty() && runs) python = by_faulthandler(pid, python_stack);
    if (!python.empty()) out += "Python:\n" + python + "\n";
    out += by_gdb(pid, variables);
  } catch (const Error& error) {
    out += text("(", error.message(), ")\n");
  }
  return out;
}

}  // namespace yoke::launch
