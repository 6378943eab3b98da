#include "yoke/device/host.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::device {
namespace {

namespace fs = std::filesystem;
using core::parse_integer;
using core::split;
using core::trimmed;

std::optional<std::string> file_text(const fs::path& path) try {
  return core::read_file(path);
} catch (const core::Error&) {
  return std::nullopt;  // this system does not have it
}

/// What follows "name:" in a file of such lines.
std::optional<std::string> field(const std::string& lines, std::string_view name) {
  for (const std::string& line : split(lines, '\n')) {
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ':') {
      return std::string(trimmed(std::string_view(line).substr(name.size() + 1)));
    }
  }
  return std::nullopt;
}

/// How many numbers stand in a list such as "0-3,8".
int list_size(std::string_view list) {
  std::int64_t count = 0;
  for (const std::string& part : split(list, ',')) {
    const std::vector<std::string> ends = split(part, '-');
    const auto first = parse_integer(ends.front());
    const auto last = parse_integer(ends.back());
    if (first && last) count += *last - *first + 1;
  }
  return static_cast<int>(count);
}

int affinity_cores(const fs::path& root) {
  const std::string status = file_text(root / "proc/self/status").value_or("");
  const auto allowed = field(status, "Cpus_allowed_list");
  return allowed ? list_size(*allowed) : static_cast<int>(std::thread::hardware_concurrency());
}

/// The folders of this process's control group and of all above it, up to the mount. Inside a
/// container the group's path may be the host's and lead nowhere; the mount is then the container's
/// own group.
std::vector<fs::path> levels(const fs::path& mount, const std::string& group) {
  std::vector<fs::path> folders{mount};
  fs::path folder = mount;
  for (const fs::path& part : fs::path(group).relative_path()) {
    folder /= part;
    folders.push_back(folder);
  }
  return folders;
}

struct ControlGroup {
  std::vector<fs::path> v1;
  std::vector<fs::path> v2;
};

/// Where the files of `controller` ("cpu", "memory") lie for this process.
ControlGroup control_group(const fs::path& root, const std::string& controller) {
  ControlGroup found;
  const fs::path mounts = root / "sys/fs/cgroup";
  for (const std::string& line : split(file_text(root / "proc/self/cgroup").value_or(""), '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) found.v2 = levels(mounts, group);
    const std::vector<std::string> names = split(controllers, ',');
    if (std::find(names.begin(), names.end(), controller) == names.end()) continue;
    found.v1 = levels(mounts / controller, group);
  }
  return found;
}

/// Processors paid for at one level; infinite where there is no quota.
double quota_of(std::string_view quota, std::string_view period) {
  const auto allowed = parse_integer(trimmed(quota));
  const auto of = parse_integer(trimmed(period));
  if (!allowed || !of || *allowed <= 0 || *of <= 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(*allowed) / static_cast<double>(*of);
}

double quota_cores(const fs::path& root) {
  double cores = std::numeric_limits<double>::infinity();
  const ControlGroup group = control_group(root, "cpu");
  for (const fs::path& level : group.v2) {
    const std::vector<std::string> parts = split(file_text(level / "cpu.max").value_or(""), ' ');
    if (parts.size() == 2) cores = std::min(cores, quota_of(parts[0], parts[1]));
  }
  for (const fs::path& level : group.v1) {
    const auto quota = file_text(level / "cpu.cfs_quota_us");
    const auto period = file_text(level / "cpu.cfs_period_us");
    if (quota && period) cores = std::min(cores, quota_of(*quota, *period));
  }
  return cores;
}

std::uint64_t memory_limit(const fs::path& root, std::uint64_t total) {
  const ControlGroup group = control_group(root, "memory");
  std::vector<fs::path> files;
  for (const fs::path& level : group.v2) files.push_back(level / "memory.max");
  for (const fs::path& level : group.v1) files.push_back(level / "memory.limit_in_bytes");
  std::uint64_t limit = total;
  for (const fs::path& file : files) {
    const auto bytes = parse_integer(trimmed(file_text(file).value_or("")));  // "max": no limit
    if (bytes && *bytes > 0) limit = std::min(limit, static_cast<std::uint64_t>(*bytes));
  }
  return limit;
}

std::uint64_t meminfo_bytes(const std::string& meminfo, std::string_view name) {
  const auto value = field(meminfo, name);  // "16314420 kB"
  const auto kib = value ? parse_integer(split(*value, ' ').front()) : std::nullopt;
  return kib ? static_cast<std::uint64_t>(*kib) * 1024 : 0;
}

}  // namespace

int usable_cores(const fs::path& root) {
  const int allowed = std::max(1, affinity_cores(root));
  const double paid = std::ceil(quota_cores(root));
  return paid < allowed ? std::max(1, static_cast<int>(paid)) : allowed;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return split(name.data(), '.').front();
}

HostMemory host_memory(const fs::path& root) {
  const std::string meminfo = file_text(root / "proc/meminfo").value_or("");
  HostMemory memory;
  memory.total_bytes = meminfo_bytes(meminfo, "MemTotal");
  memory.limit_bytes = memory_limit(root, memory.total_bytes);
  memory.available_bytes = std::min(meminfo_bytes(meminfo, "MemAvailable"), memory.limit_bytes);
  struct statvfs shared{};
  if (::statvfs((root / "dev/shm").c_str(), &shared) == 0) {
    memory.shared_bytes = std::uint64_t{shared.f_blocks} * shared.f_frsize;
    memory.shared_free_bytes = std::uint64_t{shared.f_bavail} * shared.f_frsize;
  }
  return memory;
}

}  // namespace yoke::device
