#include "yoke/core/network.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::core {
namespace {

bool is_address(const std::string& name) {
  if (name.empty()) return false;
  return name.find(':') != std::string::npos ||
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; });
}

std::string address_text(const addrinfo& entry) {
  std::array<char, INET6_ADDRSTRLEN> out{};
  const void* bytes =
      entry.ai_family == AF_INET
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(entry.ai_addr)->sin_addr)
          : &reinterpret_cast<const sockaddr_in6*>(entry.ai_addr)->sin6_addr;
  const char* written = ::inet_ntop(entry.ai_family, bytes, out.data(), out.size());
  return written == nullptr ? std::string{} : written;
}

}  // namespace

bool is_loopback(std::string_view address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

std::vector<std::string> network_interfaces() {
  std::vector<std::string> names;
  if (struct if_nameindex* const list = ::if_nameindex()) {
    for (const struct if_nameindex* entry = list; entry->if_index != 0; ++entry)
      names.emplace_back(entry->if_name);
    ::if_freenameindex(list);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void check_gloo_interface(const EnvironmentMap& variables,
                          const std::vector<std::string>& interfaces) {
  const std::string value = value_or(variables, "GLOO_SOCKET_IFNAME");
  if (value.empty()) return;
  for (const std::string& name : split(value, ',')) {
    if (std::find(interfaces.begin(), interfaces.end(), name) != interfaces.end()) continue;
    const char* why = value.front() == '^' ? "Gloo knows no exclusion list; that is NCCL's form"
                      : is_address(name)   ? "that is an address, not an interface"
                                           : "no such interface";
    throw Error(Code::invalid_argument, text("environment: GLOO_SOCKET_IFNAME=", value, ": ", why),
                text("give the name of one interface; this machine has ", joined(interfaces)));
  }
}

HostAddresses own_addresses() {
  std::array<char, 256> name{};
  HostAddresses host;
  host.name = ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::getaddrinfo(host.name.c_str(), nullptr, &wanted, &list) != 0) return host;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family == AF_INET || entry->ai_family == AF_INET6)
      host.addresses.push_back(address_text(*entry));
  }
  ::freeaddrinfo(list);
  return host;
}

std::string loopback_warning(const RankFacts& facts, const EnvironmentMap& variables,
                             const HostAddresses& host) {
  if (facts.node_count < 2) return {};
  if (is_loopback(facts.master_address)) {
    return text("MASTER_ADDR=", facts.master_address,
                " is each machine's own address, and the job has ", facts.node_count,
                " machines: name the machine of rank 0");
  }
  const bool only_loopback = !host.addresses.empty() &&
                             std::all_of(host.addresses.begin(), host.addresses.end(), is_loopback);
  if (!only_loopback || !value_or(variables, "GLOO_SOCKET_IFNAME").empty()) return {};
  return text("this machine's name ", host.name, " stands for ", joined(host.addresses),
              " only, where none of the other ", facts.node_count - 1,
              " machines reaches it: set GLOO_SOCKET_IFNAME, or mend /etc/hosts");
}

}  // namespace yoke::core
