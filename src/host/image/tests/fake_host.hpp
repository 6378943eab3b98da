#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/core/text.hpp"
#include "yoke/image/linker_cache.hpp"
#include "yoke/image/tree.hpp"

namespace yoke::image {

// The bytes of a shared library that has a SONAME and nothing else.
inline std::string library_bytes(const std::string& soname) {
  std::string out(
      "\x7f"
      "ELF\x02\x01\x01",
      7);
  out.resize(64, '\0');
  const auto put = [&](std::size_t at, auto number) {
    std::memcpy(out.data() + at, &number, sizeof number);
  };
  const std::string names = std::string(1, '\0') + soname + '\0';
  const std::uint64_t dynamic_at = 64, names_at = 96,
                      sections_at = (names_at + names.size() + 7) / 8 * 8;
  out.resize(sections_at + 3 * 64, '\0');
  put(18, std::uint16_t{62});
  put(40, sections_at);
  put(58, std::uint16_t{64});
  put(60, std::uint16_t{3});
  put(62, std::uint16_t{2});
  put(dynamic_at, std::int64_t{14});
  put(dynamic_at + 8, std::uint64_t{1});
  std::memcpy(out.data() + names_at, names.data(), names.size());
  const auto section = [&](std::size_t index, std::uint32_t type, std::uint64_t at,
                           std::uint64_t size, std::uint32_t link) {
    const std::size_t begin = sections_at + index * 64;
    put(begin + 4, type);
    put(begin + 24, at);
    put(begin + 32, size);
    put(begin + 40, link);
  };
  section(1, 6, dynamic_at, 32, 2);
  section(2, 3, names_at, names.size(), 0);
  return out;
}

// A folder that looks like a machine with a driver and cards.
class FakeHost {
 public:
  FakeHost() {
    std::string pattern = (std::filesystem::temp_directory_path() / "yoke-host-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  ~FakeHost() { std::filesystem::remove_all(root_); }
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  [[nodiscard]] const std::filesystem::path& root() const { return root_; }
  [[nodiscard]] Tree tree() const { return Tree(root_); }

  void file(const std::string& path, const std::string& content = "x") {
    const std::filesystem::path full = root_ / path.substr(1);
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full, std::ios::binary) << content;
  }
  void link(const std::string& path, const std::string& target) {
    const std::filesystem::path full = root_ / path.substr(1);
    std::filesystem::create_directories(full.parent_path());
    std::filesystem::create_symlink(target, full);
  }
  void node(const std::string& path, unsigned major, unsigned minor,
            const std::string& rest = "0666 0") {
    file(path, core::text("c ", major, ":", minor, " ", rest, "\n"));
  }

  // A driver of that version whose libraries lie in `folder`.
  void driver(const std::string& version, const std::string& folder) {
    file("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " +
                                            version + "  Thu Feb 22 01:44:30 UTC 2024\n");
    file("/proc/driver/nvidia/params", "Mobile: 0\nModifyDeviceFiles: 1\n");
    for (const char* name :
         {"libcuda", "libnvidia-ml", "libnvidia-ptxjitcompiler", "libnvidia-glcore"}) {
      file(folder + "/" + name + ".so." + version, library_bytes(std::string(name) + ".so.1"));
    }
    node("/dev/nvidiactl", 195, 255);
    node("/dev/nvidia-uvm", 510, 0);
  }

  // Card `index` in the order of buses.
  void card(int index, unsigned minor, const std::string& model = "NVIDIA H200") {
    const std::string bus = core::text("0000:", 10 + index, ":00.0");
    file("/proc/driver/nvidia/gpus/" + bus + "/information",
         core::text("Model: \t\t ", model, "\nIRQ:   \t\t 11\nGPU UUID: \t GPU-0000000", index,
                    "\nDevice Minor: \t ", minor, "\n"));
    node(core::text("/dev/nvidia", minor), 195, minor);
  }

  void cache(const std::vector<std::string>& paths) {
    std::vector<CachedLibrary> libraries;
    for (const std::string& path : paths) {
      libraries.push_back(
          {std::filesystem::path(path).filename(), path, native_library_flags(), 0});
    }
    file("/etc/ld.so.cache", write_linker_cache(std::move(libraries)));
  }

 private:
  std::filesystem::path root_;
};

}  // namespace yoke::image
