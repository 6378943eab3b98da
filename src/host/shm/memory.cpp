#include "memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::shm {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

// The number in a file that holds nothing else; "max" and a missing file give `otherwise`.
std::uint64_t number_in(const std::string& path, std::uint64_t otherwise) {
  std::ifstream in(path);
  std::uint64_t number = 0;
  return in >> number ? number : otherwise;
}

std::uint64_t of_host() {
  std::ifstream in("/proc/meminfo");
  std::string key;
  std::uint64_t kibibytes = 0;
  std::string unit;
  while (in >> key >> kibibytes) {
    if (key == "MemAvailable:") return kibibytes * 1024;
    std::getline(in, unit);
  }
  return kUnlimited;
}

// What a control group holds of files can be dropped: a data set that was read must not count.
std::uint64_t droppable_in(const std::string& path) {
  std::ifstream in(path);
  std::string key;
  std::uint64_t bytes = 0;
  std::uint64_t droppable = 0;
  while (in >> key >> bytes) {
    if (key == "inactive_file" || key == "active_file") droppable += bytes;
  }
  return droppable;
}

struct ControlGroup {
  std::string folder;
  const char* limit;
  const char* used;
};

std::uint64_t of_container(const ControlGroup& group) {
  const std::uint64_t limit = number_in(group.folder + group.limit, kUnlimited);
  const std::uint64_t used = number_in(group.folder + group.used, 0);
  const std::uint64_t droppable = std::min(used, droppable_in(group.folder + "memory.stat"));
  return limit > used - droppable ? limit - (used - droppable) : 0;
}

}  // namespace

std::uint64_t available_memory() {
  // A container sees its own control group at the root: of version 2, or of version 1.
  return std::min(
      {of_host(), of_container({"/sys/fs/cgroup/", "memory.max", "memory.current"}),
       of_container({"/sys/fs/cgroup/memory/", "memory.limit_in_bytes", "memory.usage_in_bytes"})});
}

void require_memory(std::size_t bytes, int ranks, std::uint64_t available) {
  if (bytes <= available / static_cast<std::uint64_t>(ranks)) return;
  throw Error(Code::io,
              core::text("allocate ", core::bytes_text(bytes), " of shared memory on each of ",
                         ranks, " ranks: ", core::bytes_text(available), " are available"),
              "free memory, or use fewer ranks");
}

}  // namespace yoke::shm
