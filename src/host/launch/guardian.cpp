#include "guardian.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <optional>
#include <system_error>

#include "yoke/core/error.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"

namespace yoke::launch {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// How long a killed process may take to vanish: one that hangs in the kernel (state D) does not,
// and is reported.
constexpr milliseconds kKillLimit{2'500};
constexpr milliseconds kSweepStep{20};

std::int64_t realtime_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& item : strings) out.push_back(const_cast<char*>(item.c_str()));
  out.push_back(nullptr);
  return out;
}

[[noreturn]] void become_rank(const RankProgram& program, char* const* arguments,
                              char* const* variables, const sigset_t& mask, int report,
                              pid_t guardian) {
  ::setsid();  // a terminal's Ctrl-C reaches the launcher alone, which passes it on once
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != guardian) ::_exit(127);
  if (program.kept_descriptor >= 0) ::fcntl(program.kept_descriptor, F_SETFD, 0);
  if (!program.cores.empty()) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    for (const int core : program.cores) CPU_SET(static_cast<std::size_t>(core), &cores);
    ::sched_setaffinity(0, sizeof cores, &cores);
  }
  if (program.out >= 0) ::dup2(program.out, STDOUT_FILENO);
  if (program.err >= 0) ::dup2(program.err, STDERR_FILENO);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execve(program.file.c_str(), arguments, variables);
  const int reason = errno;
  [[maybe_unused]] const ssize_t sent = ::write(report, &reason, sizeof reason);
  ::_exit(127);
}

// The guardian's own process, from its fork to its end.
class Watch {
 public:
  Watch(const GuardianOptions& options, core::Descriptor launcher)
      : options_(options), launcher_(std::move(launcher)), sweep_grace_(options.grace) {}

  void run() {
    ::prctl(PR_SET_NAME, "yoke-guardian");
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::setsid();
    watch_children();
    for (std::size_t i = 0; i < options_.ranks.size() && phase_ == Phase::running; ++i)
      start(static_cast<int>(i));
    for (const RankProgram& program : options_.ranks) {
      for (const int descriptor : {program.out, program.err, program.kept_descriptor}) {
        if (descriptor > STDERR_FILENO) ::close(descriptor);
      }
    }
    std::int32_t stuck = 0;
    while (reap()) {
      wait_for_news();
      if (deadline_ && Clock::now() >= *deadline_ && !escalate()) {
        stuck = static_cast<std::int32_t>(left_.size());
        break;
      }
    }
    for (std::size_t i = 0; i < left_.size() && stuck > 0; ++i)
      report({.kind = Event::Kind::stuck, .status = left_[i].pid});
    report({.kind = Event::Kind::all_gone, .count = stuck, .swept = swept_});
    if (!launcher_.is_open()) options_.when_abandoned();
  }

 private:
  enum class Phase { running, stopping, killing };

  void watch_children() {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    ::signal(SIGCHLD, SIG_DFL);  // a caller that ignores it would make waitpid lose the status
    sigset_t child;
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    child_signals_ = core::Descriptor(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  void start(int rank) {
    const RankProgram& program = options_.ranks[static_cast<std::size_t>(rank)];
    const std::vector<char*> arguments = pointers(program.arguments);
    const std::vector<char*> variables = pointers(program.variables);
    std::array<int, 2> ends{-1, -1};
    const pid_t guardian = ::getpid();
    const pid_t pid = ::pipe2(ends.data(), O_CLOEXEC) == 0 ? ::fork() : -1;
    int reason = pid < 0 ? errno : 0;
    if (pid == 0) {
      become_rank(program, arguments.data(), variables.data(), options_.rank_signal_mask, ends[1],
                  guardian);
    }
    if (ends[1] >= 0) ::close(ends[1]);
    if (pid > 0) {
      while (::read(ends[0], &reason, sizeof reason) < 0 && errno == EINTR) {
      }
      if (reason == 0) {
        pids_.push_back({pid, rank});
        report({.kind = Event::Kind::started, .rank = rank, .status = pid});
      } else {
        ::waitpid(pid, nullptr, 0);
      }
    }
    if (ends[0] >= 0) ::close(ends[0]);
    if (reason == 0) return;
    report({.kind = Event::Kind::not_started, .rank = rank, .status = reason});
    stop(options_.grace);
  }

  // Collects all that have ended; false when no child is left. Orphans of the ranks become children
  // of ours, so then nothing of them is left at all.
  bool reap() {
    while (true) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid < 0 && errno == EINTR) continue;
      if (pid < 0) return false;
      if (pid == 0) break;
      const auto rank =
          std::find_if(pids_.begin(), pids_.end(), [&](const Rank& r) { return r.pid == pid; });
      if (rank == pids_.end()) continue;
      const int number = rank->rank;
      pids_.erase(rank);  // before the report, which may signal the others
      report({.kind = Event::Kind::ended, .rank = number, .status = status});
    }
    if (pids_.empty() && phase_ != Phase::killing) sweep();
    return true;
  }

  // The ranks have ended; what they left behind is asked to end too, each once, and again what one
  // of them was just starting.
  void sweep() {
    sweeping_ = true;
    for (const core::ProcessId& process : core::descendants(::getpid())) {
      const bool asked = std::find(asked_.begin(), asked_.end(), process) != asked_.end();
      if (asked || !core::send_signal(process, SIGTERM)) continue;
      asked_.push_back(process);
      ++swept_;
    }
    if (phase_ == Phase::running) {
      phase_ = Phase::stopping;
      deadline_ = Clock::now() + sweep_grace_;
    }
  }

  void wait_for_news() {
    std::array<pollfd, 2> waiting{
        {{child_signals_.get(), POLLIN, 0}, {launcher_.get(), POLLIN, 0}}};
    int limit = -1;
    if (deadline_) {
      const auto left =
          std::chrono::duration_cast<milliseconds>(*deadline_ - Clock::now()).count() + 1;
      limit = static_cast<int>(std::max<std::int64_t>(0, left));
      if (sweeping_) limit = std::min(limit, static_cast<int>(kSweepStep.count()));
    }
    if (::poll(waiting.data(), waiting.size(), limit) <= 0) return;
    if (waiting[0].revents != 0) {
      signalfd_siginfo info{};
      while (::read(child_signals_.get(), &info, sizeof info) > 0) {
      }
    }
    if (waiting[1].revents != 0) obey();
  }

  void obey() {
    Order order{};
    const ssize_t n = ::recv(launcher_.get(), &order, sizeof order, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n != sizeof order) return abandoned();
    switch (order.kind) {
      case Order::Kind::pass_signal:
        for (const Rank& rank : pids_) ::kill(rank.pid, order.signal);
        sweep_grace_ = std::max(sweep_grace_, milliseconds(order.grace_ms));
        break;
      case Order::Kind::stop: stop(milliseconds(order.grace_ms)); break;
      case Order::Kind::kill: begin_killing(); break;
    }
  }

  // The launcher is gone, as the end of its socket tells, or that it takes no report.
  void abandoned() {
    launcher_.close();
    stop(options_.grace);
  }

  void stop(milliseconds grace) {
    if (phase_ == Phase::killing) return;
    const auto deadline = Clock::now() + grace;
    if (phase_ == Phase::stopping && deadline_) {
      deadline_ = std::min(*deadline_, deadline);
      return;
    }
    phase_ = Phase::stopping;
    deadline_ = deadline;
    for (const Rank& rank : pids_) ::kill(rank.pid, SIGTERM);
  }

  void begin_killing() {
    if (phase_ == Phase::killing) return;
    phase_ = Phase::killing;
    kill_limit_ = Clock::now() + kKillLimit;
    escalate();
  }

  // Past a deadline: kills all that is left and looks again soon, since a process may have been
  // starting another; false when the limit for that has passed.
  bool escalate() {
    if (phase_ != Phase::killing) {
      begin_killing();
      return true;
    }
    left_ = core::descendants(::getpid());
    for (const core::ProcessId& process : left_) core::send_signal(process, SIGKILL);
    deadline_ = Clock::now() + kSweepStep;
    return Clock::now() < kill_limit_;
  }

  void report(Event event) {
    event.time_ns = realtime_ns();
    if (!launcher_.is_open()) return;
    if (::send(launcher_.get(), &event, sizeof event, MSG_NOSIGNAL) < 0 && errno == EPIPE)
      abandoned();
  }

  struct Rank {
    pid_t pid;
    int rank;
  };

  const GuardianOptions& options_;
  core::Descriptor launcher_;
  core::Descriptor child_signals_;
  std::vector<Rank> pids_;
  Phase phase_ = Phase::running;
  bool sweeping_ = false;
  std::vector<core::ProcessId> asked_;  // by the sweep
  milliseconds sweep_grace_;
  std::int32_t swept_ = 0;
  std::optional<Clock::time_point> deadline_;
  Clock::time_point kill_limit_;
  std::vector<core::ProcessId> left_;
};

[[noreturn]] void guard(const GuardianOptions& options, core::Descriptor launcher) {
  for (const int descriptor : options.close_in_guardian) ::close(descriptor);
  int status = 0;
  try {
    Watch(options, std::move(launcher)).run();
  } catch (...) {
    status =
        1;  // out of memory: the ranks' death signal ends them, the launcher sees the socket close
  }
  ::_exit(status);
}

}  // namespace

Guardian::Guardian(const GuardianOptions& options) {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error(Code::io, core::text("start ranks: no socket pair: ",
                                     std::generic_category().message(errno)));
  }
  socket_ = core::Descriptor(ends[0]);
  core::Descriptor other(ends[1]);
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_ = ::fork();
  const int reason = errno;
  if (pid_ == 0) {
    socket_.close();
    guard(options, std::move(other));
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid_ < 0) {
    throw Error(Code::io,
                core::text("start ranks: no process: ", std::generic_category().message(reason)),
                "raise the limit on processes (ulimit -u), or end some");
  }
}

Guardian::~Guardian() {
  socket_.close();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Guardian::order(const Order& order) noexcept {
  ::send(socket_.get(), &order, sizeof order, MSG_NOSIGNAL);
}

bool Guardian::receive(Event& event) noexcept {
  while (true) {
    const ssize_t n = ::recv(socket_.get(), &event, sizeof event, 0);
    if (n < 0 && errno == EINTR) continue;
    return n == sizeof event;
  }
}

}  // namespace yoke::launch
