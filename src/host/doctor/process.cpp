#include "yoke/doctor/process.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::doctor {
namespace {

namespace fs = std::filesystem;
using core::text;

constexpr std::array<std::string_view, 15> kKinds{
    "libcuda",       "libcudart",    "libcudnn", "libnccl",      "libcublas",
    "libcublasLt",   "libcusparse",  "libcufft", "libnvJitLink", "libnvrtc",
    "libtorch_cuda", "libtorch_cpu", "libc10",   "libstdc++",    "libnvidia-ml"};

/// "libcudnn" of libcudnn.so.9; empty for a library that is not looked at.
std::string kind_of(const fs::path& file) {
  const std::string name = file.filename().string();
  std::string kind = name.substr(0, name.find(".so"));
  // torchvision and others carry a copy under a name with a hash: libcudart-60cfec8e.so.11.0
  const std::size_t dash = kind.rfind('-');
  if (dash != std::string::npos && kind.size() - dash == 9) kind.resize(dash);
  return std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end() ? "" : kind;
}

std::string maps_of(const Machine& machine, int pid) {
  const fs::path folder = machine.at(text("/proc/", pid));
  std::error_code failed;
  if (!fs::exists(folder, failed))
    throw Error(Code::not_found, text("look at process ", pid, ": there is none"),
                "ps shows those");
  try {
    return core::read_file(folder / "maps");
  } catch (const Error& error) {
    throw Error(Code::io, text("look at process ", pid, ": its maps may not be read"),
                "run as the user who owns it, or as root")
        .caused_by(error);
  }
}

/// The files that are mapped, each once, with the mark of a deleted one.
std::map<std::string, bool> files_of(const std::string& maps) {
  std::map<std::string, bool> out;
  for (const std::string& line : core::split(maps, '\n')) {
    const std::size_t slash = line.find('/');
    if (slash == std::string::npos) continue;
    std::string file = line.substr(slash);
    constexpr std::string_view kDeleted = " (deleted)";
    const bool deleted = file.ends_with(kDeleted);
    if (deleted) file.resize(file.size() - kDeleted.size());
    if (file.find(".so") != std::string::npos) out[file] = deleted;
  }
  return out;
}

std::vector<std::string> warnings_of(const std::vector<MappedLibrary>& libraries) {
  std::map<std::string, std::vector<std::string>> by_kind;
  std::vector<std::string> out;
  for (const MappedLibrary& library : libraries) {
    const std::string version = library.version ? library.version->version.text() + " " : "";
    by_kind[library.kind].push_back(version + library.file.string());
    if (library.deleted)
      out.push_back(library.file.string() + " was replaced on disk since it was loaded");
  }
  for (const auto& [kind, files] : by_kind) {
    if (files.size() > 1)
      out.push_back(text(files.size(), " copies of ", kind, " are mapped: ", core::joined(files)));
  }
  return out;
}

}  // namespace

ProcessLibraries read_process(const Machine& machine, int pid) {
  ProcessLibraries out{.pid = pid};
  const std::string maps = maps_of(machine, pid);
  const auto command = machine.text_of(text("/proc/", pid, "/comm"));
  out.command = command ? std::string(core::trimmed(*command)) : "";
  // The process may live in a container: its files are seen through its own root.
  const fs::path inside = machine.at(text("/proc/", pid, "/root"));
  std::error_code failed;
  const fs::path root = fs::exists(inside, failed) ? inside : machine.root();
  for (const auto& [file, deleted] : files_of(maps)) {
    MappedLibrary library{.kind = kind_of(file), .file = file, .deleted = deleted};
    if (library.kind.empty()) continue;
    if (!deleted) library.version = stack::library_version(root / fs::path(file).relative_path());
    out.libraries.push_back(std::move(library));
  }
  std::stable_sort(out.libraries.begin(), out.libraries.end(),
                   [](const MappedLibrary& a, const MappedLibrary& b) { return a.kind < b.kind; });
  out.warnings = warnings_of(out.libraries);
  return out;
}

}  // namespace yoke::doctor
