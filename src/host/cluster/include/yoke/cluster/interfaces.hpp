#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::cluster {

struct Interface {
  std::string name{};
  std::string address{};  ///< IPv4
};

/// Those of this machine that are up and have an IPv4 address, the loopback last.
[[nodiscard]] std::vector<Interface> interfaces();

/// The one that `wanted` names: by its name, an address, or a network (10.77.0.0/24).
/// Errors: invalid_argument, quoting `wanted` and listing what there is.
[[nodiscard]] Interface choose_interface(std::string_view wanted,
                                         const std::vector<Interface>& all);

/// The one with this address; an empty one if there is none.
[[nodiscard]] Interface interface_of(std::string_view address, const std::vector<Interface>& all);

/// What a machine uses to reach the others, for the start line: "ib0, InfiniBand, 200 Gbit/s",
/// "eth0, TCP, 10 Gbit/s". `root`: where /sys is looked for.
[[nodiscard]] std::string transport_text(const std::string& interface,
                                         const std::filesystem::path& root = "/");

}  // namespace yoke::cluster
