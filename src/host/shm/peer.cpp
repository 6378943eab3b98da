#include "peer.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <sstream>
#include <string>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::shm {
namespace {

struct Stat {
  char state{'?'};
  long threads{0};
  std::uint64_t start_time{0};
};

// One read() without a stream: a wait asks this of each missing rank every few milliseconds.
std::string read_stat(pid_t pid) {
  const int file =
      ::open(core::text("/proc/", pid, "/stat").c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (file < 0) return {};
  std::array<char, 1024> bytes{};
  const ssize_t size = ::read(file, bytes.data(), bytes.size());
  ::close(file);
  return size > 0 ? std::string(bytes.data(), static_cast<std::size_t>(size)) : std::string{};
}

std::optional<Stat> stat_of(pid_t pid) {
  const std::string whole = read_stat(pid);
  const std::size_t name_end = whole.rfind(')');  // the name may hold spaces and brackets
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(whole.substr(name_end + 1));
  Stat stat;
  std::string skipped;
  fields >> stat.state;  // field 3
  for (int field = 4; field < 20; ++field) fields >> skipped;
  fields >> stat.threads >> skipped >> stat.start_time;  // fields 20, 21, 22
  if (!fields) return std::nullopt;
  return stat;
}

}  // namespace

Process this_process() {
  const pid_t pid = ::getpid();
  const std::optional<Stat> stat = stat_of(pid);
  if (!stat) {
    throw Error(Code::unsupported, core::text("read /proc/", pid, "/stat: not there"),
                "mount /proc, or use another backend");
  }
  return {pid, stat->start_time};
}

bool is_alive(const Process& process) {
  const std::optional<Stat> stat = stat_of(process.pid);
  // Not to be read is not the same as gone: this process may be out of descriptors.
  if (!stat) return ::kill(process.pid, 0) == 0 || errno != ESRCH;
  if (stat->start_time != process.start_time) return false;
  // The first thread of a process may end before the others; it then shows as a zombie with
  // company.
  const bool over = stat->state == 'Z' || stat->state == 'X';
  return !over || stat->threads > 1;
}

}  // namespace yoke::shm
