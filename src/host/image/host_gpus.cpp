#include "yoke/image/host_gpus.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "yoke/core/text.hpp"

namespace yoke::image {
namespace {

bool is_version(std::string_view word) {
  return std::count(word.begin(), word.end(), '.') >= 1 &&
         word.find_first_not_of("0123456789.") == std::string_view::npos && word.size() >= 5;
}

/// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu ..." and the open module's.
std::string version_in(const std::string& text) {
  for (const std::string& word : core::split(text.substr(0, text.find('\n')), ' ')) {
    if (is_version(word)) return word;
  }
  return {};
}

/// The number after libcuda.so. in the usual folders: where the kernel tells nothing (WSL2, a tree
/// of files).
std::string version_of_files(const Tree& host) {
  constexpr std::array<std::string_view, 7> kFolders{"/usr/lib/x86_64-linux-gnu",
                                                     "/usr/lib/x86_64-linux-gnu/nvidia/current",
                                                     "/usr/lib64",
                                                     "/run/opengl-driver/lib",
                                                     "/home/kubernetes/bin/nvidia/lib64",
                                                     "/usr/local/nvidia/lib64",
                                                     "/usr/lib/aarch64-linux-gnu"};
  for (const std::string_view folder : kFolders) {
    for (const std::string& name : host.list(folder)) {
      constexpr std::string_view kLibrary = "libcuda.so.";
      if (name.starts_with(kLibrary) && is_version(name.substr(kLibrary.size()))) {
        return name.substr(kLibrary.size());
      }
    }
  }
  return {};
}

std::string driver_version(const Tree& host) {
  if (const auto text = host.read("/proc/driver/nvidia/version")) {
    if (std::string version = version_in(*text); !version.empty()) return version;
  }
  if (const auto text = host.read("/sys/module/nvidia/version")) {
    return std::string(core::trimmed(*text));
  }
  return version_of_files(host);
}

std::string field(const std::string& text, std::string_view name) {
  for (const std::string& line : core::split(text, '\n')) {
    if (!line.starts_with(name)) continue;
    const std::size_t colon = line.find(':', name.size());
    if (colon != std::string::npos)
      return std::string(core::trimmed(std::string_view(line).substr(colon + 1)));
  }
  return {};
}

/// "gi3" is 3; nothing for another name.
std::optional<int> numbered(const std::string& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const auto number = core::parse_integer(name.substr(prefix.size()));
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

std::optional<unsigned> capability_minor(const Tree& host, const std::string& folder) {
  const auto text = host.read(folder + "/access");
  const auto number = core::parse_integer(field(text.value_or(""), "DeviceFileMinor"));
  return number ? std::optional(static_cast<unsigned>(*number)) : std::nullopt;
}

std::vector<MigSlice> slices_of(const Tree& host, unsigned minor) {
  std::vector<MigSlice> slices;
  const std::string root = core::text("/proc/driver/nvidia/capabilities/gpu", minor, "/mig");
  for (const std::string& gpu_name : host.list(root)) {
    const auto gpu = numbered(gpu_name, "gi");
    const auto gpu_minor = capability_minor(host, root + "/" + gpu_name);
    if (!gpu || !gpu_minor) continue;
    for (const std::string& name : host.list(root + "/" + gpu_name)) {
      const auto compute = numbered(name, "ci");
      const auto compute_minor = capability_minor(host, root + "/" + gpu_name + "/" + name);
      if (compute && compute_minor) slices.push_back({*gpu, *compute, *gpu_minor, *compute_minor});
    }
  }
  std::sort(slices.begin(), slices.end(), [](const MigSlice& a, const MigSlice& b) {
    return std::pair(a.gpu_instance, a.compute_instance) <
           std::pair(b.gpu_instance, b.compute_instance);
  });
  return slices;
}

std::vector<std::string> drm_of(const Tree& host, const std::string& bus_id) {
  std::vector<std::string> nodes;
  for (const std::string& name : host.list("/sys/bus/pci/devices/" + bus_id + "/drm")) {
    if ((name.starts_with("card") || name.starts_with("renderD")) &&
        host.exists("/dev/dri/" + name)) {
      nodes.push_back("/dev/dri/" + name);
    }
  }
  return nodes;
}

std::vector<HostGpu> gpus_of(const Tree& host) {
  std::vector<HostGpu> gpus;
  const std::string root = "/proc/driver/nvidia/gpus";
  for (const std::string& bus : host.list(root)) {  // sorted by bus, which is NVML's order
    const std::string text = host.read(root + "/" + bus + "/information").value_or("");
    const auto minor = core::parse_integer(field(text, "Device Minor"));
    if (!minor) continue;
    HostGpu gpu{.index = static_cast<int>(gpus.size()),
                .minor = static_cast<unsigned>(*minor),
                .uuid = field(text, "GPU UUID"),
                .bus_id = bus,
                .model = field(text, "Model")};
    gpu.slices = slices_of(host, gpu.minor);
    gpu.drm = drm_of(host, bus);
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

/// Nodes in /dev where /proc tells nothing of the cards.
std::vector<HostGpu> gpus_of_nodes(const Tree& host) {
  std::vector<HostGpu> gpus;
  for (const std::string& name : host.list("/dev")) {
    const auto minor = numbered(name, "nvidia");
    if (minor) gpus.push_back({.minor = static_cast<unsigned>(*minor)});
  }
  std::sort(gpus.begin(), gpus.end(),
            [](const HostGpu& a, const HostGpu& b) { return a.minor < b.minor; });
  for (std::size_t i = 0; i < gpus.size(); ++i) gpus[i].index = static_cast<int>(i);
  return gpus;
}

std::optional<unsigned> major_of(const Tree& host, std::string_view device) {
  for (const std::string& line : core::split(host.read("/proc/devices").value_or(""), '\n')) {
    const std::string_view inner = core::trimmed(line);
    const std::size_t space = inner.find(' ');
    if (space == std::string_view::npos || inner.substr(space + 1) != device) continue;
    const auto number = core::parse_integer(inner.substr(0, space));
    if (number) return static_cast<unsigned>(*number);
  }
  return std::nullopt;
}

}  // namespace

std::string HostGpus::mig_layout() const {
  std::vector<std::string> parts;
  for (const HostGpu& gpu : gpus) {
    for (const MigSlice& slice : gpu.slices) {
      parts.push_back(
          core::text(gpu.index, ":gi", slice.gpu_instance, "/ci", slice.compute_instance));
    }
  }
  return core::joined(parts, " ");
}

HostGpus host_gpus(const Tree& host) {
  HostGpus facts{.driver = driver_version(host)};
  facts.gpus = gpus_of(host);
  facts.is_wsl = host.exists("/dev/dxg");
  if (facts.is_wsl && facts.gpus.empty()) {
    facts.gpus.push_back({.model = "card behind /dev/dxg"});
  } else if (facts.gpus.empty()) {
    facts.gpus = gpus_of_nodes(host);
  }
  facts.capability_major = major_of(host, "nvidia-caps");
  return facts;
}

}  // namespace yoke::image
