#include "driver_files.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/image/linker_cache.hpp"
#include "yoke/stack/elf.hpp"

namespace yoke::image {
namespace {

namespace fs = std::filesystem;
using core::text;

/// The capability for which a driver library is there; the name is what stands before ".so".
struct Purpose {
  std::string_view name;
  std::string_view capability;
};

constexpr std::array kPurposes{
    Purpose{"libcuda", "compute"},
    Purpose{"libcudadebugger", "compute"},
    Purpose{"libnvidia-opencl", "compute"},
    Purpose{"libnvidia-gpucomp", "compute"},
    Purpose{"libnvidia-ptxjitcompiler", "compute"},
    Purpose{"libnvidia-fatbinaryloader", "compute"},
    Purpose{"libnvidia-allocator", "compute"},
    Purpose{"libnvidia-compiler", "compute"},
    Purpose{"libnvidia-pkcs11", "compute"},
    Purpose{"libnvidia-pkcs11-openssl3", "compute"},
    Purpose{"libnvidia-nvvm", "compute"},
    Purpose{"libnvidia-nvvm70", "compute"},
    Purpose{"libnvidia-tileiras", "compute"},
    Purpose{"libnvidia-sandboxutils", "compute"},
    Purpose{"libnvidia-ml", "utility"},
    Purpose{"libnvidia-cfg", "utility"},
    Purpose{"libnvidia-nscq", "utility"},
    Purpose{"libnvcuvid", "video"},
    Purpose{"libnvidia-encode", "video"},
    Purpose{"libnvidia-opticalflow", "video"},
    Purpose{"libnvidia-ngx", "ngx"},
    // WSL2's driver
    Purpose{"libdxcore", "compute"},
    Purpose{"libcuda_loader", "compute"},
    Purpose{"libd3d12", "graphics"},
    Purpose{"libd3d12core", "graphics"},
};

std::string_view capability_of(std::string_view library) {
  const std::string_view stem = library.substr(0, library.find(".so"));
  const auto* found = std::find_if(kPurposes.begin(), kPurposes.end(),
                                   [&](const Purpose& purpose) { return purpose.name == stem; });
  return found == kPurposes.end() ? "graphics" : found->capability;
}

constexpr std::array<std::string_view, 12> kFolders{
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64/nvidia",
    "/usr/lib64",
    "/usr/lib",
    "/run/opengl-driver/lib",
    "/home/kubernetes/bin/nvidia/lib64",
    "/usr/local/nvidia/lib64",
    "/opt/nvidia/lib64",
    "/usr/lib/wsl/lib",
};

constexpr std::array<std::string_view, 7> kPrograms{"nvidia-smi",
                                                    "nvidia-debugdump",
                                                    "nvidia-persistenced",
                                                    "nvidia-cuda-mps-control",
                                                    "nvidia-cuda-mps-server",
                                                    "nvidia-imex",
                                                    "nvidia-imex-ctl"};

constexpr std::array<std::string_view, 7> kProgramFolders{"/usr/bin",
                                                          "/usr/sbin",
                                                          "/run/current-system/sw/bin",
                                                          "/home/kubernetes/bin/nvidia/bin",
                                                          "/usr/local/nvidia/bin",
                                                          "/opt/bin",
                                                          "/usr/lib/wsl/lib"};

class Finder {
 public:
  Finder(const Tree& host, const HostGpus& gpus, const std::set<std::string>& capabilities,
         const InjectionOptions& options)
      : host_(host), gpus_(gpus), capabilities_(capabilities), options_(options) {}

  DriverFiles find() {
    for (const std::string& folder : folders()) libraries_of(folder);
    if (out_.files.empty()) {
      out_.warnings.push_back(
          text("driver ", gpus_.driver, " is loaded and none of its libraries was found"));
    }
    programs();
    firmware();
    sockets();
    configuration();
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool wants(std::string_view capability) const {
    return capabilities_.contains(std::string(capability));
  }

  /// The linker's own answer first, then the folders that distributions use, then the search path.
  [[nodiscard]] std::vector<std::string> folders() {
    std::vector<std::string> found = cached_folders();
    found.insert(found.end(), kFolders.begin(), kFolders.end());
    for (const std::string& driver : host_.list("/usr/lib/wsl/drivers")) {
      found.push_back("/usr/lib/wsl/drivers/" + driver);
    }
    found.insert(found.end(), options_.search_path.begin(), options_.search_path.end());
    std::vector<std::string> once;
    for (const std::string& folder : found) {
      const auto resolved = host_.resolve(folder);
      if (!resolved || !host_.is_folder(*resolved)) continue;
      if (std::find(once.begin(), once.end(), resolved->string()) == once.end()) {
        once.push_back(resolved->string());
      }
    }
    return once;
  }

  [[nodiscard]] std::vector<std::string> cached_folders() {
    std::vector<std::string> folders;
    const auto cache = host_.read("/etc/ld.so.cache");
    if (!cache) return folders;
    try {
      for (const CachedLibrary& library : read_linker_cache(*cache, "/etc/ld.so.cache")) {
        const bool is_driver =
            library.name == "libcuda.so.1" || library.name == "libnvidia-ml.so.1";
        if (!is_driver || library.flags != native_library_flags()) continue;
        if (const auto file = host_.resolve(library.path)) folders.push_back(file->parent_path());
      }
    } catch (const Error& error) {
      out_.warnings.push_back(error.message());
    }
    return folders;
  }

  /// Driver libraries end in their version; WSL2's do not, and lie in folders of their own.
  [[nodiscard]] bool is_driver_library(const std::string& folder, const std::string& name) const {
    if (folder.starts_with("/usr/lib/wsl/")) return name.find(".so") != std::string::npos;
    return !gpus_.driver.empty() && name.ends_with(".so." + gpus_.driver) &&
           (name.starts_with("libnv") || name.starts_with("libcuda") ||
            name.find("nvidia") != std::string::npos);
  }

  void libraries_of(const std::string& folder) {
    for (const std::string& name : host_.list(folder)) {
      if (!is_driver_library(folder, name) || !wants(capability_of(name))) continue;
      library(folder, name);
    }
  }

  void library(const std::string& folder, const std::string& name) {
    const auto file = host_.resolve(fs::path(folder) / name);
    const auto size = file ? host_.file_size(*file) : std::nullopt;
    if (!size) {
      out_.warnings.push_back(text(folder, "/", name, " leads nowhere, so it is left out"));
      return;
    }
    if (*size == 0) {
      out_.warnings.push_back(text(folder, "/", name, " is empty, so it is left out"));
      return;
    }
    if (!seen_.insert(name).second) return;
    const std::string where = options_.library_folder.empty() ? folder : options_.library_folder;
    out_.files.push_back({InjectedKind::library, file->string(), where + "/" + name,
                          text("driver library for ", capability_of(name))});
    links_of(*file, where, name);
  }

  /// The SONAME that programs ask for, and the plain .so that a few open.
  void links_of(const fs::path& file, const std::string& where, const std::string& name) {
    std::string soname;
    try {
      soname = stack::ElfFile::open(host_.outside(file)).soname();
    } catch (const Error& error) {
      out_.warnings.push_back(error.message());
    }
    if (!soname.empty() && soname != name && soname.find('/') == std::string::npos) {
      link(where + "/" + soname, name, "SONAME of the library");
    }
    const std::string stem = name.substr(0, name.find(".so"));
    if (stem == "libcuda" && name != "libcuda.so") {
      link(where + "/libcuda.so", soname.empty() || soname == name ? name : soname,
           "triton and others open it by this name");
    }
    if (stem == "libnvidia-opticalflow")
      link(where + "/libnvidia-opticalflow.so", soname, "opened by this name");
  }

  void link(const std::string& path, const std::string& target, std::string why) {
    const auto same = [&](const InjectedLink& one) { return one.path == path; };
    if (target.empty() || std::any_of(out_.links.begin(), out_.links.end(), same)) return;
    if (seen_.contains(fs::path(path).filename().string())) return;
    out_.links.push_back({path, target, std::move(why)});
  }

  void programs() {
    if (!wants("utility") && !wants("compute")) return;
    for (const std::string_view program : kPrograms) {
      const bool is_mps = program.find("mps") != std::string_view::npos;
      if (!wants(is_mps ? "compute" : "utility")) continue;
      for (const std::string_view folder : kProgramFolders) {
        const auto file = host_.resolve(fs::path(folder) / program);
        if (!file || host_.file_size(*file).value_or(0) == 0) continue;
        const std::string where =
            options_.program_folder.empty() ? "/usr/bin" : options_.program_folder;
        out_.files.push_back({InjectedKind::program, file->string(),
                              where + "/" + std::string(program), "driver program"});
        break;
      }
    }
  }

  /// The GPU's own firmware, where the kernel looks for it, the first place that has it.
  void firmware() {
    const std::string custom = std::string(
        core::trimmed(host_.read("/sys/module/firmware_class/parameters/path").value_or("")));
    const std::string kernel =
        std::string(core::trimmed(host_.read("/proc/sys/kernel/osrelease").value_or("")));
    std::vector<std::string> places;
    if (!custom.empty()) places.push_back(custom);
    if (!kernel.empty()) places.push_back("/lib/firmware/updates/" + kernel);
    places.emplace_back("/lib/firmware/updates");
    if (!kernel.empty()) places.push_back("/lib/firmware/" + kernel);
    places.emplace_back("/lib/firmware");
    for (const std::string& place : places) {
      const std::string folder = place + "/nvidia/" + gpus_.driver;
      if (gpus_.driver.empty() || !host_.is_folder(folder)) continue;
      for (const std::string& name : host_.list(folder)) {
        if (!name.starts_with("gsp") || !name.ends_with(".bin")) continue;
        const auto file = host_.resolve(fs::path(folder) / name);
        if (!file) continue;
        out_.files.push_back({InjectedKind::firmware, file->string(),
                              text("/lib/firmware/nvidia/", gpus_.driver, "/", name),
                              "firmware of the driver"});
      }
      return;
    }
  }

  void sockets() {
    for (const std::string_view socket : {"/run/nvidia-persistenced/socket",
                                          "/run/nvidia-fabricmanager/socket", "/tmp/nvidia-mps"}) {
      const bool is_mps = socket == "/tmp/nvidia-mps";
      if (!wants(is_mps ? "compute" : "utility")) continue;
      const auto file = host_.resolve(socket);
      if (!file) continue;
      out_.files.push_back(
          {InjectedKind::socket, file->string(), std::string(socket),
           is_mps ? "clients of MPS meet its server there" : "talks to a daemon of the driver"});
    }
  }

  void configuration() {
    std::vector<std::pair<std::string, std::string_view>> wanted;
    if (wants("graphics") || wants("display")) {
      wanted = {{"/etc/vulkan/icd.d/nvidia_icd.json", "Vulkan finds the driver"},
                {"/usr/share/vulkan/icd.d/nvidia_icd.json", "Vulkan finds the driver"},
                {"/usr/share/glvnd/egl_vendor.d/10_nvidia.json", "EGL finds the driver"},
                {"/usr/share/nvidia/nvoptix.bin", "OptiX needs it"}};
    }
    if (wants("compute"))
      wanted.emplace_back("/etc/OpenCL/vendors/nvidia.icd", "OpenCL finds the driver");
    if (options_.extra_gds) {
      wanted.emplace_back("/etc/cufile.json", "settings of GPUDirect Storage");
      wanted.emplace_back("/run/udev", "GPUDirect Storage asks it for disks");
    }
    for (const auto& [path, why] : wanted) {
      const auto file = host_.resolve(path);
      if (!file) continue;
      out_.files.push_back({InjectedKind::configuration, file->string(), path, std::string(why)});
    }
  }

  const Tree& host_;
  const HostGpus& gpus_;
  const std::set<std::string>& capabilities_;
  const InjectionOptions& options_;
  std::set<std::string> seen_;
  DriverFiles out_;
};

}  // namespace

DriverFiles find_driver_files(const Tree& host, const HostGpus& gpus,
                              const std::set<std::string>& capabilities,
                              const InjectionOptions& options) {
  return Finder(host, gpus, capabilities, options).find();
}

}  // namespace yoke::image
