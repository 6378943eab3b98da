#include "yoke/image/injection.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <set>
#include <utility>

#include "driver_files.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/image/linker_cache.hpp"

namespace yoke::image {
namespace {

namespace fs = std::filesystem;
using core::text;

constexpr unsigned kEverybody = 0006;

class Planner {
 public:
  Planner(const Tree& host, const GpuRequest& request, const Tree* image,
          const InjectionOptions& options)
      : host_(host), request_(request), image_(image), options_(options), gpus_(host_gpus(host)) {}

  InjectionPlan plan() {
    plan_.request = request_.from;
    plan_.warnings = request_.warnings;
    if (request_.kind == GpuRequest::Kind::nothing) return std::move(plan_);
    if (gpus_.driver.empty() && gpus_.gpus.empty()) {
      plan_.warnings.push_back(
          text(request_.from, ": this machine has no NVIDIA driver, so nothing goes in"));
      if (request_.kind == GpuRequest::Kind::some) (void)choose_gpus(request_, gpus_);
      return std::move(plan_);
    }
    plan_.driver = gpus_.driver.empty() ? "not known" : gpus_.driver;
    plan_.mig_layout = gpus_.mig_layout();
    check_conditions();
    cards();
    files();
    computed_files();
    variables();
    if (options_.privileged) {
      plan_.warnings.push_back(
          "privileged: the container sees every device, so the choice of cards isolates nothing");
    }
    warn_of_reload();
    return std::move(plan_);
  }

 private:
  void check_conditions() {
    const ConditionFacts facts = condition_facts(gpus_);
    for (const std::string& condition : request_.conditions) {
      const std::string reason = unmet(condition, facts);
      if (reason.empty()) continue;
      throw Error(Code::unsupported,
                  text("start with GPUs: the image asks for ", condition, ": ", reason),
                  "update the driver; or set NVIDIA_DISABLE_REQUIRE=1 if you know better");
    }
  }

  void cards() {
    const std::vector<ChosenGpu> chosen = choose_gpus(request_, gpus_);
    if (gpus_.is_wsl) {
      if (!chosen.empty()) node("/dev/dxg", "all cards of WSL2 are behind it");
      for (const ChosenGpu& one : chosen) plan_.gpus.push_back(one.gpu->model);
      return;
    }
    for (const ChosenGpu& one : chosen) card(one);
    device_.clear();
    if (chosen.empty()) return;
    node("/dev/nvidiactl", "control node of the driver");
    node("/dev/nvidia-uvm", "memory that CPU and GPU share; CUDA does not start without it");
    node("/dev/nvidia-uvm-tools", "debuggers and profilers of that memory", true);
    node("/dev/nvidia-modeset", "display and EGL", true);
    extras();
  }

  void card(const ChosenGpu& one) {
    const HostGpu& gpu = *one.gpu;
    const std::string path = text("/dev/nvidia", gpu.minor);
    device_ = one.slice == nullptr ? std::to_string(gpu.index)
                                   : text(gpu.index, ":", one.slice - gpu.slices.data());
    plan_.gpus.push_back(text(
        gpu.index, ": ", gpu.model.empty() ? "GPU" : gpu.model, ", minor ", gpu.minor,
        one.slice == nullptr
            ? ""
            : text(", slice gi", one.slice->gpu_instance, "/ci", one.slice->compute_instance)));
    node(path, text("GPU ", gpu.index, gpu.model.empty() ? "" : " (" + gpu.model + ")"));
    if (one.slice != nullptr) {
      capability(one.slice->gpu_capability,
                 text("GPU instance ", one.slice->gpu_instance, " of GPU ", gpu.index));
      capability(one.slice->compute_capability,
                 text("compute instance ", one.slice->compute_instance, " of GPU ", gpu.index));
      return;
    }
    if (!request_.capabilities.contains("graphics") && !request_.capabilities.contains("display"))
      return;
    for (const std::string& drm : gpu.drm) node(drm, text("graphics of GPU ", gpu.index));
  }

  /// The driver makes a capability node when somebody asks for it; its numbers are known before.
  void capability(unsigned minor, const std::string& why) {
    const std::string path = text("/dev/nvidia-caps/nvidia-cap", minor);
    if (host_.node(path)) return node(path, why);
    if (!gpus_.capability_major) {
      plan_.warnings.push_back(text(path, " is missing and /proc/devices names no nvidia-caps"));
      return;
    }
    constexpr unsigned kReadable = 0444;
    plan_.nodes.push_back({path,
                           {.major = *gpus_.capability_major, .minor = minor, .mode = kReadable},
                           device_,
                           false,
                           why});
  }

  void extras() {
    if (options_.extra_gdrcopy) node("/dev/gdrdrv", "GDRCopy was asked for");
    if (options_.extra_gds) {
      for (const std::string& name : host_.list("/dev")) {
        if (name.starts_with("nvidia-fs")) node("/dev/" + name, "GPUDirect Storage was asked for");
      }
    }
    if (options_.extra_infiniband) {
      for (const std::string& name : host_.list("/dev/infiniband")) {
        if (name.starts_with("uverbs") || name == "rdma_cm") {
          node("/dev/infiniband/" + name, "InfiniBand was asked for");
        }
      }
    }
    if (options_.extra_nvswitch) {
      for (const std::string& name : host_.list("/dev")) {
        if (name.starts_with("nvidia-nvswitch")) node("/dev/" + name, "NVSwitch was asked for");
      }
    }
    for (const int channel : options_.imex_channels) {
      node(text("/dev/nvidia-caps-imex-channels/channel", channel), "IMEX channel was asked for");
    }
  }

  void node(const std::string& path, std::string why, bool optional = false) {
    const auto found = host_.node(path);
    if (!found) {
      if (optional) return;
      plan_.warnings.push_back(
          text(path, " is missing",
               path == "/dev/nvidia-uvm" ? ": run nvidia-modprobe -u -c0 on the host first" : ""));
      return;
    }
    if ((found->mode & kEverybody) != kEverybody &&
        std::find(plan_.groups.begin(), plan_.groups.end(), found->gid) == plan_.groups.end()) {
      plan_.groups.push_back(found->gid);
    }
    plan_.nodes.push_back({path, *found, device_, true, std::move(why)});
  }

  void files() {
    DriverFiles found = find_driver_files(host_, gpus_, request_.capabilities, options_);
    plan_.files = std::move(found.files);
    plan_.links = std::move(found.links);
    plan_.warnings.insert(plan_.warnings.end(), found.warnings.begin(), found.warnings.end());
  }

  void computed_files() {
    if (const auto params = host_.read("/proc/driver/nvidia/params")) {
      plan_.texts.push_back({"/proc/driver/nvidia/params", without_device_files(*params),
                             "so that no tool inside makes device nodes"});
    }
    if (image_ == nullptr) return;
    if (image_->exists("/lib/ld-musl-x86_64.so.1")) return musl_path();
    linker_cache();
  }

  static std::string without_device_files(std::string params) {
    constexpr std::string_view kOn = "ModifyDeviceFiles: 1";
    const std::size_t at = params.find(kOn);
    if (at != std::string::npos) params[at + kOn.size() - 1] = '0';
    return params;
  }

  [[nodiscard]] std::vector<std::string> library_folders() const {
    std::vector<std::string> folders;
    for (const InjectedFile& file : plan_.files) {
      if (file.kind != InjectedKind::library) continue;
      const std::string folder = fs::path(file.path).parent_path();
      if (std::find(folders.begin(), folders.end(), folder) == folders.end())
        folders.push_back(folder);
    }
    return folders;
  }

  void musl_path() {
    std::string lines =
        image_->read("/etc/ld-musl-x86_64.path").value_or("/lib\n/usr/local/lib\n/usr/lib\n");
    for (const std::string& folder : library_folders()) lines += folder + "\n";
    plan_.texts.push_back(
        {"/etc/ld-musl-x86_64.path", lines, "musl's linker finds the driver's libraries"});
  }

  /// The image's own cache with the driver's libraries before it.
  void linker_cache() {
    std::vector<CachedLibrary> libraries;
    std::set<std::string> ours;
    const auto add = [&](const std::string& path) {
      const std::string name = fs::path(path).filename();
      if (ours.insert(name).second) libraries.push_back({name, path, native_library_flags(), 0});
    };
    for (const InjectedFile& file : plan_.files) {
      if (file.kind == InjectedKind::library) add(file.path);
    }
    for (const InjectedLink& link : plan_.links) add(link.path);
    if (const auto cache = image_->read("/etc/ld.so.cache")) {
      try {
        for (CachedLibrary& library : read_linker_cache(*cache, "the image's /etc/ld.so.cache")) {
          if (!ours.contains(library.name)) libraries.push_back(std::move(library));
        }
      } catch (const Error& error) {
        plan_.warnings.push_back(error.message());
      }
    }
    plan_.texts.push_back({"/etc/ld.so.cache", write_linker_cache(std::move(libraries)),
                           "the linker finds the driver's libraries without ldconfig"});
  }

  void variables() {
    plan_.variables.push_back(
        {"NVIDIA_VISIBLE_DEVICES", "void", "no hook of the engine shall put cards in once more"});
    if (image_ == nullptr && !options_.library_folder.empty()) {
      plan_.variables.push_back(
          {"LD_LIBRARY_PATH", options_.library_folder, "no linker cache could be computed"});
    }
  }

  void warn_of_reload() {
    if (!options_.systemd_cgroups) return;
    const std::vector<std::string> missing = missing_char_links(host_, plan_);
    if (missing.empty()) return;
    plan_.warnings.push_back(
        text("systemd drops the container's cards at its next reload, since ",
             core::joined(missing), missing.size() == 1 ? " is" : " are",
             " missing; run nvidia-ctk system create-dev-char-symlinks --create-all"));
  }

  const Tree& host_;
  const GpuRequest& request_;
  const Tree* image_;
  const InjectionOptions& options_;
  HostGpus gpus_;
  std::string device_;  // of the nodes that are being added
  InjectionPlan plan_;
};

/// FNV-1a: tells whether two texts differ, against accidents and not against an attacker.
class Fingerprint {
 public:
  void add(std::string_view text) {
    for (const char byte : text) step(static_cast<unsigned char>(byte));
    step(0);
  }
  [[nodiscard]] std::string text() const {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string out;
    for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[hash_ >> shift & 0xF];
    return out;
  }

 private:
  void step(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001b3ULL; }
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

}  // namespace

InjectionPlan plan_injection(const Tree& host, const GpuRequest& request, const Tree* image,
                             const InjectionOptions& options) {
  return Planner(host, request, image, options).plan();
}

std::string plan_digest(const InjectionPlan& plan) {
  Fingerprint print;
  print.add(plan.driver);
  print.add(plan.mig_layout);
  for (const InjectedNode& node : plan.nodes) {
    print.add(text(node.path, " ", node.node.type, node.node.major, ":", node.node.minor, " ",
                   node.node.mode));
  }
  for (const InjectedFile& file : plan.files) print.add(file.host + "\n" + file.path);
  for (const InjectedLink& link : plan.links) print.add(link.path + "\n" + link.target);
  for (const InjectedVariable& variable : plan.variables)
    print.add(variable.name + "=" + variable.value);
  return print.text();
}

std::vector<std::string> missing_char_links(const Tree& host, const InjectionPlan& plan) {
  std::vector<std::string> missing;
  for (const InjectedNode& node : plan.nodes) {
    if (!node.is_there || node.node.type != 'c') continue;
    const std::string link = text("/dev/char/", node.node.major, ":", node.node.minor);
    if (!host.exists(link)) missing.push_back(link);
  }
  return missing;
}

}  // namespace yoke::image
