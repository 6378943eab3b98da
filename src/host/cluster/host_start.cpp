#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <system_error>
#include <utility>

#include "yoke/cluster/hosts.hpp"
#include "yoke/cluster/interfaces.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/descriptor.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cluster {
namespace {

using core::text;

std::atomic<pid_t> first_child{0};
static_assert(std::atomic<pid_t>::is_always_lock_free);  // the handler reads it

/// The first machine's launcher hears of it through the end of its connection: ssh ends by the
/// signal, and the launcher there sees the end of its input.
void pass_on(int signal) {
  const int before = errno;
  if (const pid_t pid = first_child.load(); pid > 0) ::kill(pid, signal);
  errno = before;
}

/// Whether the name is this machine's, so that no ssh is needed.
bool is_here(const std::string& host) {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) name = {};
  return host == name.data() || host == "localhost" ||
         !interface_of(host, interfaces()).address.empty();
}

/// What the other machine's shell runs.
std::string remote_command(const HostStart& start, std::size_t index) {
  const Host& host = start.hosts[index];
  std::vector<std::string> words{start.program, "launch"};
  words.insert(words.end(), start.words.begin(), start.words.end());
  words.insert(words.end(),
               {"--nnodes", std::to_string(start.hosts.size()), "--node-rank",
                std::to_string(index), "--rdzv-endpoint", start.endpoint, "--secret-file", "-"});
  if (host.slots) words.insert(words.end(), {"--nproc-per-node", std::to_string(*host.slots)});
  words.emplace_back("--");
  words.insert(words.end(), start.command.begin(), start.command.end());
  std::string line = "cd " + shell_quoted(start.folder) + " && exec";
  if (!host.devices.empty()) {
    std::vector<std::string> slots;
    for (const int slot : host.devices) slots.push_back(std::to_string(slot));
    line += " env YOKE_SLOTS=" + core::joined(slots, ",");
  }
  for (const std::string& word : words) line += " " + shell_quoted(word);
  return line;
}

struct Started {
  pid_t pid = 0;
  core::Descriptor input;  // open for as long as the job is to go on
};

Started start_one(const std::vector<std::string>& command, const std::string& program,
                  const std::string& secret) {
  std::array<int, 2> input{-1, -1};
  if (::pipe2(input.data(), O_CLOEXEC) != 0)
    throw Error(Code::io, text("start ssh: ", std::generic_category().message(errno)));
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setpgid(0, 0);  // Ctrl-C reaches us alone, and we pass it on once
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::dup2(input[0], STDIN_FILENO);
    ::execv(program.c_str(), arguments.data());
    ::_exit(127);
  }
  ::close(input[0]);
  const std::string line = secret + "\n";
  core::Descriptor end(input[1]);
  if (pid < 0) throw Error(Code::io, text("start ssh: ", std::generic_category().message(errno)));
  [[maybe_unused]] const ssize_t sent = ::write(end.get(), line.data(), line.size());
  return {pid, std::move(end)};
}

int code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

int start_on_hosts(const HostStart& start) {
  const std::string shell = start.shell.empty() ? "ssh" : start.shell;
  const auto program = core::find_program(shell, core::environment());
  if (!program) {
    throw Error(Code::not_found, text("start the other machines: no program ", shell),
                "install openssh-client, or call yoke launch on each machine");
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::vector<Started> started;
  for (std::size_t i = 0; i < start.hosts.size(); ++i) {
    const std::string line = remote_command(start, i);
    if (start.shell.empty() && is_here(start.hosts[i].name)) {
      started.push_back(start_one({"/bin/sh", "-c", line}, "/bin/sh", start.secret));
      continue;
    }
    std::vector<std::string> command{shell};
    if (start.shell.empty()) command.insert(command.end(), {"-o", "BatchMode=yes", "--"});
    command.insert(command.end(), {start.hosts[i].name, line});
    started.push_back(start_one(command, *program, start.secret));
  }
  first_child = started.front().pid;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) std::signal(signal, pass_on);
  int code = 0;
  std::size_t left = started.size();
  while (left > 0) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, 0);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) break;
    const auto found = std::find_if(started.begin(), started.end(),
                                    [&](const Started& one) { return one.pid == pid; });
    if (found == started.end()) continue;
    --left;
    const int own = code_of(status);
    const std::string& host = start.hosts[static_cast<std::size_t>(found - started.begin())].name;
    if (own == 255)
      core::say(core::Level::warning,
                text(shell, " to ", host, " failed, or its connection broke"));
    // All launchers end with the job's code, the first one's word counts.
    if (own != 0 && (code == 0 || found == started.begin())) code = own == 255 ? 1 : own;
  }
  return code;
}

void end_with_input() {
  ::fcntl(STDIN_FILENO, F_SETOWN, ::getpid());
  ::fcntl(STDIN_FILENO, F_SETSIG, SIGTERM);
  ::fcntl(STDIN_FILENO, F_SETFL, ::fcntl(STDIN_FILENO, F_GETFL) | O_ASYNC);
  pollfd input{STDIN_FILENO, POLLIN, 0};
  // It may have ended before anybody was asked to tell.
  if (::poll(&input, 1, 0) > 0 && (input.revents & POLLHUP) != 0) ::raise(SIGTERM);
}

}  // namespace yoke::cluster
