#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <utility>

#include "yoke/core/descriptor.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"

namespace yoke::core {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  Descriptor read;
  Descriptor write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error(Code::io, text("open a pipe: ", std::generic_category().message(errno)));
  }
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& item : strings) out.push_back(item.data());
  out.push_back(nullptr);
  return out;
}

/// What the child does between fork and exec: nothing that takes a lock or memory.
[[noreturn]] void become(const char* program, char* const* arguments, char* const* variables,
                         std::array<int, 3> streams, int report, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int stream = 0; stream < 3; ++stream)
    ::dup2(streams[static_cast<std::size_t>(stream)], stream);
  ::execve(program, arguments, variables);
  const int reason = errno;
  [[maybe_unused]] const ssize_t sent = ::write(report, &reason, sizeof reason);
  ::_exit(127);
}

}  // namespace

struct Child::State {
  ChildOptions options;
  Clock::time_point deadline;
  pid_t pid = 0;
  bool reaped = false;
  Descriptor input;
  Descriptor out;
  Descriptor err;
  std::size_t sent = 0;
  ChildResult result;

  /// Moves what is ready between the child and us, for at most `limit`; false once both outputs are
  /// closed.
  bool exchange(std::chrono::milliseconds limit) {
    if (!out.is_open() && !err.is_open()) return false;
    std::array<pollfd, 3> waiting{
        {{out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}, {input.get(), POLLOUT, 0}}};
    if (::poll(waiting.data(), waiting.size(),
               static_cast<int>(std::max<std::int64_t>(0, limit.count()))) <= 0) {
      return true;
    }
    if (waiting[0].revents != 0) take(out, result.out);
    if (waiting[1].revents != 0) take(err, result.err);
    if (waiting[2].revents != 0) give();
    return out.is_open() || err.is_open();
  }

  static void take(Descriptor& from, std::string& into) {
    std::array<char, 1 << 14> block;
    const ssize_t n = ::read(from.get(), block.data(), block.size());
    if (n > 0) into.append(block.data(), static_cast<std::size_t>(n));
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) from.close();
  }

  void give() {
    const ssize_t n =
        ::write(input.get(), options.input.data() + sent, options.input.size() - sent);
    if (n > 0) sent += static_cast<std::size_t>(n);
    if (sent == options.input.size() || (n < 0 && errno != EINTR && errno != EAGAIN)) input.close();
  }

  [[nodiscard]] std::chrono::milliseconds left(Clock::time_point until) const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  }

  /// Collects the child's status; it has closed its output, been killed, or is about to end.
  void reap() {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    reaped = true;
    if (WIFSIGNALED(status)) {
      result.signal = WTERMSIG(status);
    } else {
      result.exit_code = WEXITSTATUS(status);
    }
  }

  /// Whether it ended by `until`.
  bool ends_by(Clock::time_point until) {
    const Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    while (true) {
      siginfo_t info{};
      if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
          info.si_pid == pid) {
        return true;
      }
      const auto rest = left(until).count();
      if (rest <= 0) return false;
      pollfd end{handle.get(), POLLIN, 0};
      // Without a handle (Linux before 5.3) look again every 5 ms.
      ::poll(&end, handle.is_open() ? 1 : 0,
             static_cast<int>(handle.is_open() ? rest : std::min<std::int64_t>(5, rest)));
    }
  }
};

Child::Child(ChildOptions options) : state_(std::make_unique<State>()) {
  if (options.command.empty())
    throw Error(Code::invalid_argument, "start a program: no name given");
  const EnvironmentMap variables = options.variables ? *options.variables : environment();
  const auto program = find_program(options.command.front(), variables);
  if (!program) {
    throw Error(Code::not_found, text("start ", options.command.front(), ": no such program"),
                "give its path, or put its folder into PATH");
  }
  std::vector<std::string> words = options.command;
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
  const std::vector<char*> arguments = pointers(words);
  const std::vector<char*> environment_block = pointers(entries);

  Pipe input = make_pipe();
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  Pipe report = make_pipe();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0)
    throw Error(Code::io, text("start ", *program, ": ", std::generic_category().message(errno)));
  if (pid == 0) {
    become(program->c_str(), arguments.data(), environment_block.data(),
           {input.read.get(), out.write.get(), err.write.get()}, report.write.get(), parent);
  }
  report.write.close();
  int reason = 0;
  if (::read(report.read.get(), &reason, sizeof reason) == sizeof reason) {
    ::waitpid(pid, nullptr, 0);
    throw Error(Code::io, text("start ", *program, ": ", std::generic_category().message(reason)));
  }
  state_->deadline = Clock::now() + options.limit;
  state_->pid = pid;
  state_->out = std::move(out.read);
  state_->err = std::move(err.read);
  state_->options = std::move(options);
  if (!state_->options.input.empty()) {
    state_->input = std::move(input.write);
    ::fcntl(state_->input.get(), F_SETFL, O_NONBLOCK);
  }
}

Child::~Child() {
  if (state_->reaped) return;
  ::kill(-state_->pid, SIGKILL);
  state_->reap();
}

pid_t Child::pid() const noexcept { return state_->pid; }

bool Child::wait_for(std::string_view words, std::chrono::milliseconds limit) {
  const auto until = Clock::now() + limit;
  const auto found = [&] {
    return state_->result.out.find(words) != std::string::npos ||
           state_->result.err.find(words) != std::string::npos;
  };
  while (!found()) {
    const auto rest = state_->left(until);
    if (rest.count() <= 0 || !state_->exchange(rest)) return found();
  }
  return true;
}

void Child::signal(int number) noexcept {
  if (!state_->reaped) ::kill(state_->pid, number);
}

ChildResult Child::wait() {
  if (state_->reaped) return state_->result;
  while (state_->left(state_->deadline).count() > 0 &&
         state_->exchange(state_->left(state_->deadline))) {
  }
  if (!state_->ends_by(state_->deadline)) {
    state_->result.timed_out = true;
    ::kill(-state_->pid, SIGKILL);
  }
  state_->reap();
  return state_->result;
}

ChildResult run_child(ChildOptions options) { return Child(std::move(options)).wait(); }

}  // namespace yoke::core
