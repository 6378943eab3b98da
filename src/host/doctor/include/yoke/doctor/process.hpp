#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "yoke/doctor/machine.hpp"

namespace yoke::doctor {

/// A library that a process has mapped.
struct MappedLibrary {
  std::string kind{};            ///< libcudnn, libnccl, ...: without version
  std::filesystem::path file{};  ///< as the process sees it
  std::optional<stack::LibraryVersion> version{};
  bool deleted = false;  ///< replaced on disk since it was loaded
};

struct ProcessLibraries {
  int pid = 0;
  std::string command{};
  std::vector<MappedLibrary> libraries{};
  std::vector<std::string> warnings{};  ///< two files of one library; a deleted one
};

/// Which of CUDA's and torch's libraries a process really has, from /proc/PID/maps.
/// Errors: not_found where there is no such process; io where its maps may not be read.
[[nodiscard]] ProcessLibraries read_process(const Machine& machine, int pid);

}  // namespace yoke::doctor
