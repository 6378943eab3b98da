#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"
#include "yoke/image/sandbox.hpp"

namespace yoke::image {
namespace {

namespace fs = std::filesystem;
using core::text;

[[noreturn]] void fail(const std::string& doing) {
  throw Error(Code::unsupported, text("start the sandbox: ", doing, ": ", std::strerror(errno)),
              "run as root, allow user name spaces, or pass --writable");
}

void write_line(const std::string& file, const std::string& line) {
  std::ofstream out(file);
  out << line;
  out.close();
  if (!out) fail("write " + file);
}

/// A name space of our own for mounts; a user who is not root becomes root in one for users.
void enter_namespaces() {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  if (uid == 0) {
    if (::unshare(CLONE_NEWNS) != 0) fail("a name space for mounts");
  } else {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) fail("name spaces for users and mounts");
    write_line("/proc/self/setgroups", "deny");
    write_line("/proc/self/uid_map", text("0 ", uid, " 1"));
    write_line("/proc/self/gid_map", text("0 ", gid, " 1"));
  }
  if (::mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    fail("keep mounts to ourselves");
}

/// An option of overlayfs ends at a comma, and its list of folders parts at colons.
std::string escaped(const std::string& path) {
  std::string out;
  for (const char byte : path) {
    if (byte == '\\' || byte == ',' || byte == ':') out += '\\';
    out += byte;
  }
  return out;
}

/// Lays memory over the root folder and returns where both appear as one.
std::string overlay(const std::string& root) {
  // The mount point is shared by all sandboxes: each sees only its own mount there.
  const fs::path base = core::cache_folder() / "sandbox";
  fs::create_directories(base);
  enter_namespaces();
  if (::mount("tmpfs", base.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") != 0)
    fail("mount memory");
  for (const char* name : {"upper", "work", "root"}) fs::create_directory(base / name);
  const std::string options =
      text("lowerdir=", escaped(root), ",upperdir=", escaped(base / "upper"),
           ",workdir=", escaped(base / "work"));
  if (::mount("overlay", (base / "root").c_str(), "overlay", MS_NODEV, options.c_str()) != 0)
    fail("mount an overlay");
  return base / "root";
}

/// A descriptor that holds the text, for bubblewrap to read.
int descriptor_of(const InjectedText& file) {
  const int descriptor = ::memfd_create("yoke", 0);
  if (descriptor < 0) fail("keep " + file.path);
  const auto written = ::write(descriptor, file.content.data(), file.content.size());
  if (written != static_cast<ssize_t>(file.content.size())) fail("keep " + file.path);
  ::lseek(descriptor, 0, SEEK_SET);
  return descriptor;
}

void quiet_input() {
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null >= 0) ::dup2(null, STDIN_FILENO);
}

/// Raises what NCCL (locked memory), threads (stack) and loaders (files) need, as far as the system
/// lets us; the image's entry says what is still too little.
void raise_limits(const RunRequest& request) {
  const auto raise = [](auto resource, rlim_t wanted) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur >= wanted) return;
    const rlimit all{.rlim_cur = wanted, .rlim_max = std::max(limit.rlim_max, wanted)};
    if (::setrlimit(resource, &all) == 0) return;  // only root may go above the hard limit
    limit.rlim_cur = std::min(limit.rlim_max, wanted);
    (void)::setrlimit(resource, &limit);
  };
  raise(RLIMIT_MEMLOCK, RLIM_INFINITY);
  raise(RLIMIT_STACK, static_cast<rlim_t>(kStackBytes));
  raise(RLIMIT_NOFILE, static_cast<rlim_t>(request.open_files()));
}

/// Becomes bubblewrap. `information` gets the number of its first process inside.
[[noreturn]] void become_sandbox(const Sandbox& sandbox, const RunRequest& request,
                                 const std::string& root, int information) {
  std::vector<std::string> words = sandbox.command;
  if (!request.writable) {
    const std::string merged = overlay(root);
    for (std::size_t i = 0; i + 2 < words.size(); ++i) {
      if (words[i] == "--bind" && words[i + 2] == "/") words[i + 1] = merged;
    }
  }
  words.insert(words.end(), {"--info-fd", std::to_string(information)});
  for (const InjectedText& file : sandbox.texts) {
    words.insert(words.end(), {"--perms", "0644", "--ro-bind-data",
                               std::to_string(descriptor_of(file)), file.path});
  }
  words.emplace_back("--");
  words.insert(words.end(), sandbox.program.begin(), sandbox.program.end());
  if (!request.interactive) quiet_input();
  raise_limits(request);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  throw Error(Code::not_found, text("start the sandbox: bwrap: ", std::strerror(errno)),
              "install bubblewrap, or use --engine");
}

/// Without a terminal of its own the sandbox leaves the caller's process group, so that Ctrl-C
/// comes to us alone, and is passed on.
void leave_group(const RunRequest& request) {
  if (!request.terminal && ::isatty(STDIN_FILENO) == 0) ::setpgid(0, 0);
  if (!request.terminal && !request.interactive) ::setpgid(0, 0);
}

/// The signals that a program may want to see before its end.
sigset_t passed_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD})
    ::sigaddset(&set, number);
  return set;
}

/// The process of which bubblewrap says {"child-pid": N}; its first child is the program.
/// `otherwise` while there is none.
pid_t program_behind(int information, pid_t otherwise) {
  std::array<char, 512> bytes{};
  const ssize_t count = ::pread(information, bytes.data(), bytes.size() - 1, 0);
  const std::string said(bytes.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  const std::size_t name = said.find("child-pid");
  const std::size_t first =
      name == std::string::npos ? name : said.find_first_of("0123456789", name);
  if (first == std::string::npos) return otherwise;
  const auto inside =
      core::parse_integer(said.substr(first, said.find_first_not_of("0123456789", first) - first));
  if (!inside) return otherwise;
  std::ifstream children(text("/proc/", *inside, "/task/", *inside, "/children"));
  pid_t program = 0;
  return children >> program ? program : otherwise;
}

/// Waits for the end and passes signals on; bubblewrap itself would die of them and take the
/// program along before it could save.
int watch(pid_t sandbox, int information, const sigset_t& signals) {
  while (true) {
    int number = 0;
    if (::sigwait(&signals, &number) != 0) continue;
    if (number != SIGCHLD) {
      ::kill(program_behind(information, sandbox), number);
      continue;
    }
    int status = 0;
    if (::waitpid(sandbox, &status, WNOHANG) != sandbox) continue;
    constexpr int kBySignal = 128;
    return WIFEXITED(status) ? WEXITSTATUS(status) : kBySignal + WTERMSIG(status);
  }
}

}  // namespace

int run_sandbox(const Sandbox& sandbox, const RunRequest& request, const std::string& root) {
  const int information = ::memfd_create("yoke-sandbox", 0);
  if (information < 0) fail("keep the sandbox's number");
  const sigset_t signals = passed_signals();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t child = ::fork();
  if (child < 0) fail("a process");
  if (child > 0) return watch(child, information, signals);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  leave_group(request);
  become_sandbox(sandbox, request, root, information);
}

}  // namespace yoke::image
