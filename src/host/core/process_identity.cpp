#include "process_identity.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "yoke/core/process.hpp"

namespace yoke::core {
namespace {

// The inode of the first name space, fixed in Linux.
constexpr std::uint64_t kHostPidNamespace = 0xEFFFFFFC;

}  // namespace

ProcessIdentity own_identity() {
  ProcessIdentity self;
  self.pid = static_cast<std::uint64_t>(::getpid());
  struct stat info{};
  if (::stat("/proc/self/ns/pid", &info) == 0) self.pid_namespace = info.st_ino;
  if (self.pid_namespace == kHostPidNamespace) self.host_pid = self.pid;
  if (const auto known = identify(::getpid())) self.start_time = known->start_time;
  return self;
}

}  // namespace yoke::core
