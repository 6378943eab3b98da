#include <sys/utsname.h>

#include <algorithm>
#include <optional>
#include <system_error>

#include "checks.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"
#include "yoke/device/host.hpp"

namespace yoke::doctor {
namespace {

namespace fs = std::filesystem;
using core::text;
using std::chrono::milliseconds;

constexpr std::uint64_t kMebibyte = 1 << 20;
constexpr std::uint64_t kDefaultSharedBytes = 64 * kMebibyte;  // of a container without --shm-size

bool is_there(const fs::path& path) {
  std::error_code failed;
  return fs::exists(path, failed);
}

Finding platform(const Machine& machine) {
  utsname system{};
  if (::uname(&system) != 0) return skip("the system does not tell its name");
  const std::string what = text(system.sysname, " ", system.release, ", ", system.machine);
  if (is_there(machine.at("/dev/kfd")))
    return warn(what + ": AMD cards (ROCm) are not supported; training runs on the CPU",
                "use a machine with NVIDIA cards");
  if (std::string_view(system.machine) != "x86_64")
    return warn(what + ": Yoke is built and tested on x86_64; the matrix holds x86_64 wheels",
                "judge the versions on this machine by hand");
  return pass(machine.driver().wsl ? what + ", under WSL" : what);
}

Finding processors(const Machine& machine) {
  const device::HostMemory memory = device::host_memory(machine.root());
  const int cores = device::usable_cores(machine.root());
  std::string what = text(cores, " cores, ", core::bytes_text(memory.total_bytes), " of memory");
  if (memory.limit_bytes < memory.total_bytes)
    what += text(", limited to ", core::bytes_text(memory.limit_bytes), " by a control group");
  return pass(std::move(what));
}

/// The size with which /dev/shm was mounted: "size=65536k".
std::optional<std::uint64_t> mounted_size(const std::string& mounts) {
  for (const std::string& line : core::split(mounts, '\n')) {
    const std::vector<std::string> fields = core::split(line, ' ');
    if (fields.size() < 4 || fields[1] != "/dev/shm") continue;
    for (const std::string& option : core::split(fields[3], ',')) {
      if (!option.starts_with("size=") || !option.ends_with("k")) continue;
      const auto kibibytes = core::parse_integer(option.substr(5, option.size() - 6));
      if (kibibytes) return static_cast<std::uint64_t>(*kibibytes) * 1024;
    }
  }
  return std::nullopt;
}

Finding shared_memory(const Machine& machine) {
  const auto mounts = machine.text_of("/proc/self/mounts");
  const auto mounted = mounted_size(mounts.value_or(""));
  const std::uint64_t bytes = mounted ? *mounted : device::host_memory(machine.root()).shared_bytes;
  if (bytes == 0) return warn("no /dev/shm", "mount a tmpfs there");
  const std::string what = "/dev/shm has " + core::bytes_text(bytes);
  return bytes > kDefaultSharedBytes ? pass(what) : warn(what);
}

/// Soft and hard limit of a row of /proc/self/limits; "unlimited" is the largest number.
struct Limit {
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
};

constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

std::optional<Limit> limit_of(const std::string& limits, std::string_view row) {
  for (const std::string& line : core::split(limits, '\n')) {
    if (!line.starts_with(row)) continue;
    std::vector<std::uint64_t> numbers;
    for (const std::string& word : core::split(line.substr(row.size()), ' ')) {
      const auto number = core::parse_integer(word);
      if (word == "unlimited") numbers.push_back(kUnlimited);
      if (number) numbers.push_back(static_cast<std::uint64_t>(*number));
    }
    if (numbers.size() >= 2) return Limit{.soft = numbers[0], .hard = numbers[1]};
  }
  return std::nullopt;
}

std::string limit_text(std::uint64_t bytes) {
  return bytes == kUnlimited ? "unlimited" : core::bytes_text(bytes);
}

Finding limits(const Machine& machine) {
  const auto rows = machine.text_of("/proc/self/limits");
  if (!rows) return skip("no /proc/self/limits");
  const auto files = limit_of(*rows, "Max open files");
  const auto locked = limit_of(*rows, "Max locked memory");
  const auto stack = limit_of(*rows, "Max stack size");
  if (!files || !locked || !stack) return skip("/proc/self/limits has other rows than usual");
  const std::string what = text("open files ", files->soft, " of ", files->hard, ", locked memory ",
                                limit_text(locked->soft), ", stack ", limit_text(stack->soft));
  constexpr std::uint64_t kFewFiles = 4096;
  if (files->hard < kFewFiles) return warn(what, "ulimit -n 65536; docker: --ulimit nofile=65536");
  std::error_code failed;
  const fs::directory_iterator networks(machine.at("/sys/class/infiniband"), failed);
  if (!failed && networks != fs::directory_iterator() && locked->soft != kUnlimited)
    return warn(what + ", and there is InfiniBand, whose buffers are locked",
                "ulimit -l unlimited; docker: --ulimit memlock=-1");
  return pass(what);
}

Finding control_groups(const Machine& machine) {
  if (is_there(machine.at("/sys/fs/cgroup/cgroup.controllers"))) return pass("version 2");
  if (is_there(machine.at("/sys/fs/cgroup/memory"))) return pass("version 1");
  return skip("no /sys/fs/cgroup");
}

std::string container_kind(const Machine& machine) {
  if (is_there(machine.at("/.dockerenv"))) return "Docker";
  if (is_there(machine.at("/run/.containerenv"))) return "Podman";
  if (is_there(machine.at("/.singularity.d"))) return "Apptainer";
  if (is_there(machine.at("/var/run/secrets/kubernetes.io"))) return "Kubernetes";
  return "";
}

Finding containers(const Machine& machine) {
  const std::string inside = container_kind(machine);
  std::vector<std::string> engines;
  for (const char* program : {"docker", "podman", "buildah", "apptainer", "enroot", "bwrap"}) {
    for (const std::string& folder :
         core::split(core::value_or(machine.variables(), "PATH"), ':')) {
      if (folder.empty() || !is_there(machine.at(folder) / program)) continue;
      engines.emplace_back(program);
      break;
    }
  }
  const std::string place = inside.empty() ? "not in a container" : "inside " + inside;
  return pass(place + (engines.empty() ? "; no engine here" : "; has " + core::joined(engines)));
}

}  // namespace

std::vector<Check> host_checks() {
  return {
      {"host.platform", "system", Weight::hurts, milliseconds(100), platform, ""},
      {"host.processors", "processors and memory", Weight::hurts, milliseconds(200), processors,
       ""},
      {"host.shm", "shared memory", Weight::hurts, milliseconds(200), shared_memory,
       "start the container with --ipc=host or --shm-size=8g; Kubernetes: a memory-backed emptyDir "
       "at /dev/shm"},
      {"host.limits", "limits", Weight::hurts, milliseconds(100), limits, ""},
      {"host.cgroups", "control groups", Weight::hurts, milliseconds(100), control_groups, ""},
      {"host.container", "containers", Weight::hurts, milliseconds(200), containers, ""},
  };
}

}  // namespace yoke::doctor
