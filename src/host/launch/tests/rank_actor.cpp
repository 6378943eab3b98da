// A rank that plays a part: argument r (from 1 on) is the script of rank r - 1, and the last that
// of all further ranks. A script is a list of acts between commas, each `name` or `name:value`.
// `self:N` as first argument starts this program as N ranks by launch::run_self.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "yoke/core/console.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/telemetry.hpp"
#include "yoke/core/text.hpp"
#include "yoke/launch/launch.hpp"

namespace {

using yoke::core::EnvironmentMap;
using yoke::core::text;

void say(const std::string& line) { std::cout << line << std::endl; }

[[noreturn]] void wait_for_ever() {
  while (true) ::pause();
}

sockaddr_in meeting_point(const EnvironmentMap& variables) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(variables.at("MASTER_PORT"))));
  ::inet_pton(AF_INET, variables.at("MASTER_ADDR").c_str(), &address.sin_addr);
  return address;
}

/// Calls rank 0 until it listens.
int connect_to_rank_0(const EnvironmentMap& variables) {
  const sockaddr_in address = meeting_point(variables);
  while (true) {
    const int call = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(call, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      return call;
    ::close(call);
    ::usleep(1000);
  }
}

void read_to_end(int call) {
  char byte = 0;
  while (::read(call, &byte, 1) > 0) {
  }
}

/// A process that nobody waits for, in a session of its own; a stubborn one does not end on
/// SIGTERM. Returns when it stands.
void leave_grandchild(bool stubborn) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  if (::fork() != 0) {
    ::close(ends[1]);
    read_to_end(ends[0]);
    return;
  }
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, 0);
  if (::fork() != 0) ::_exit(0);
  if (stubborn) std::signal(SIGTERM, SIG_IGN);
  const std::string line = text("grandchild ", ::getpid(), "\n");
  [[maybe_unused]] const ssize_t sent = ::write(STDOUT_FILENO, line.data(), line.size());
  ::close(ends[1]);
  wait_for_ever();
}

sigset_t block_signals() {
  sigset_t some;
  ::sigemptyset(&some);
  for (const int one : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) ::sigaddset(&some, one);
  ::sigprocmask(SIG_BLOCK, &some, nullptr);
  return some;
}

/// "PID:SIGNAL".
void send_signal(const std::string& value) {
  const auto parts = yoke::core::split(value, ':');
  ::kill(static_cast<pid_t>(std::stoi(parts.at(0))), std::stoi(parts.at(1)));
}

void wait_for_file(const std::string& path) {
  while (::access(path.c_str(), F_OK) != 0) ::usleep(1000);
}

/// Waits for a signal and says which came. With `code` "on" goes on, else exits: with `code`, or if
/// that is empty with 128 + n, as a rank does that has saved.
void await_signal(const std::string& code) {
  const sigset_t some = block_signals();
  say("ready");
  int got = 0;
  ::sigwait(&some, &got);
  say("got " + yoke::core::signal_name(got));
  if (code == "on") return;
  std::_Exit(code.empty() ? 128 + got : std::stoi(code));
}

class Actor {
 public:
  Actor() : variables_(yoke::core::environment()) {}

  void play(const std::string& script) {
    bool skip = false;
    for (const std::string& act : yoke::core::split(script, ',')) {
      if (std::exchange(skip, false)) continue;
      if (act.starts_with("if-attempt:")) {  // the next act only then
        skip = variables_.at("TORCHELASTIC_RESTART_COUNT") != act.substr(11);
        continue;
      }
      const std::size_t colon = act.find(':');
      perform(act.substr(0, colon), colon == std::string::npos ? "" : act.substr(colon + 1));
    }
  }

 private:
  void perform(const std::string& name, const std::string& value) {
    if (name == "say") return say(value);
    if (name == "env")
      return say(value + "=" + yoke::core::value_or(variables_, value, "(not set)"));
    if (name == "facts") return say_facts();
    if (name == "exit") std::_Exit(std::stoi(value));
    if (name == "throw") throw yoke::Error(yoke::Code::corrupt_data, value, "look at the sample");
    if (name == "throw-std") throw std::runtime_error(value);
    if (name == "ignore-term") std::signal(SIGTERM, SIG_IGN);
    if (name == "kill") die_of(std::stoi(value));
    if (name == "kill-guardian") ::kill(::getppid(), SIGKILL);
    if (name == "block") block_signals();
    if (name == "send") send_signal(value);
    if (name == "touch") yoke::core::write_atomically(value, "");
    if (name == "until-file") wait_for_file(value);
    if (name == "steps") end_steps(std::stoul(value));
    if (name == "print-bytes") print_bytes(std::stoul(value));
    if (name == "stop-self") ::raise(SIGSTOP);
    if (name == "reduce") begin_reducing(std::stoul(value));
    if (name == "grandchild") leave_grandchild(value == "stubborn");
    if (name == "await-signal") await_signal(value);
    if (name == "connect") calls_.push_back(connect_to_rank_0(variables_));
    if (name == "hang-up") ::close(calls_.at(0));
    if (name == "until-closed") read_to_end(calls_.at(1));
    if (name == "serve") serve(std::stoi(value));
    if (name == "wait") wait_for_ever();
  }

  /// What the program takes itself to be, whoever started it.
  void say_facts() const {
    const yoke::core::RankFacts facts = yoke::core::rank_facts(variables_);
    say(text("facts ", facts.launcher, " rank ", facts.rank, " of ", facts.world_size, " local ",
             facts.local_rank, " of ", facts.local_world_size, " node ", facts.node_rank, " of ",
             facts.node_count));
  }

  /// That many bytes of lines on standard output, and a last one without an end.
  static void print_bytes(std::size_t count) {
    std::string line(79, 'x');
    line += '\n';
    std::string out;
    while (out.size() + line.size() < count) out += line;
    out.resize(count, 'y');
    std::cout << out << std::flush;
  }

  void end_steps(std::uint64_t steps) {
    telemetry_ = std::make_unique<yoke::core::TelemetryWriter>(
        yoke::core::telemetry_root(variables_),
        yoke::core::TelemetryIdentity{.job = variables_.at("YOKE_JOB_ID"),
                                      .rank = std::stoi(variables_.at("RANK"))});
    telemetry_->step_ended({.step = steps});
  }

  /// Ends this many steps, and begins an all-reduce that does not end.
  void begin_reducing(std::uint64_t steps) {
    end_steps(steps);
    static_cast<void>(telemetry_->collective_began({.kind = yoke::core::CollectiveKind::all_reduce,
                                                    .sequence = 3,
                                                    .bytes = std::uint64_t{1} << 20}));
  }

  static void die_of(int signal) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::signal(signal, SIG_DFL);  // a sanitizer's handler would make an exit of it
    ::raise(signal);
  }

  /// Rank 0 takes so many calls and loses contact when the first is closed.
  void serve(int count) {
    const int listener = std::stoi(variables_.at("YOKE_STORE_FD"));
    ::listen(listener, count);
    for (int i = 0; i < count; ++i)
      calls_.push_back(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    read_to_end(calls_.at(0));
    throw yoke::Error(yoke::Code::peer_lost, "all-reduce #3: connection closed by rank 1");
  }

  EnvironmentMap variables_;
  std::vector<int> calls_;
  std::unique_ptr<yoke::core::TelemetryWriter> telemetry_;
};

int run(const std::vector<std::string>& scripts) {
  const EnvironmentMap variables = yoke::core::environment();
  const auto rank = static_cast<std::size_t>(yoke::core::rank_facts(variables).rank);
  try {
    Actor().play(scripts.at(std::min(rank, scripts.size() - 1)));
    return 0;
  } catch (const std::exception& error) {
    yoke::launch::report_failure(error, variables);
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> scripts(argv + 1, argv + argc);
  if (scripts.at(0).starts_with("self:")) {
    yoke::core::attach(std::make_shared<yoke::core::StreamConsole>(STDERR_FILENO));
    const int ranks = std::stoi(scripts[0].substr(5));
    if (const auto code = yoke::launch::run_self(argc, argv, {.ranks = ranks})) return *code;
    scripts.erase(scripts.begin());
  }
  return run(scripts);
}
