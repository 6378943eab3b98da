#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "yoke/core/environment.hpp"

namespace yoke::core {

/// Names of this machine's network interfaces, sorted.
[[nodiscard]] std::vector<std::string> network_interfaces();

/// "localhost", 127.0.0.0/8 or ::1, by their text.
[[nodiscard]] bool is_loopback(std::string_view address);

/// Refuses a GLOO_SOCKET_IFNAME that Gloo would fail on later, deep inside.
/// Errors: invalid_argument, quoting the value and listing `interfaces`, for an exclusion list
///   (NCCL's form), an address, or a name that is not among them.
void check_gloo_interface(const EnvironmentMap& variables,
                          const std::vector<std::string>& interfaces);

/// A machine's name and the addresses that it stands for, as text.
struct HostAddresses {
  std::string name{};
  std::vector<std::string> addresses{};
};

/// This machine's, as its own resolver tells them. Cost: one look-up, which may go to the network.
[[nodiscard]] HostAddresses own_addresses();

/// The line to say where a job of several machines offers only a loopback address, to which no
/// other machine comes: MASTER_ADDR, or the host's name, by which Gloo finds its interface unless
/// GLOO_SOCKET_IFNAME names one. Empty where all is well.
[[nodiscard]] std::string loopback_warning(const RankFacts& facts, const EnvironmentMap& variables,
                                           const HostAddresses& host);

}  // namespace yoke::core
