#pragma once

#include <set>
#include <string>
#include <vector>

#include "yoke/image/host_gpus.hpp"
#include "yoke/image/injection.hpp"
#include "yoke/image/tree.hpp"

namespace yoke::image {

struct DriverFiles {
  std::vector<InjectedFile> files{};
  std::vector<InjectedLink> links{};
  std::vector<std::string> warnings{};
};

// The driver's libraries, programs, firmware, sockets and configuration for these capabilities.
[[nodiscard]] DriverFiles find_driver_files(const Tree& host, const HostGpus& gpus,
                                            const std::set<std::string>& capabilities,
                                            const InjectionOptions& options);

}  // namespace yoke::image
