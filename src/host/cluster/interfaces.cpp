#include "yoke/cluster/interfaces.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/network.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cluster {
namespace {

namespace fs = std::filesystem;
using core::text;

std::optional<std::uint32_t> number_of(const std::string& address) {
  in_addr raw{};
  if (::inet_pton(AF_INET, address.c_str(), &raw) != 1) return std::nullopt;
  return ntohl(raw.s_addr);
}

bool fits(std::string_view wanted, const Interface& one) {
  if (wanted == one.name || wanted == one.address) return true;
  const std::size_t slash = wanted.find('/');
  if (slash == std::string_view::npos) return false;
  const auto network = number_of(std::string(wanted.substr(0, slash)));
  const auto bits = core::parse_integer(wanted.substr(slash + 1));
  const auto own = number_of(one.address);
  if (!network || !bits || !own || *bits < 0 || *bits > 32) return false;
  const std::uint32_t mask = *bits == 0 ? 0U : ~std::uint32_t{0} << (32 - *bits);
  return (*own & mask) == (*network & mask);
}

std::string read_or_nothing(const fs::path& path) {
  try {
    return std::string(core::trimmed(core::read_file(path)));
  } catch (const Error&) {
    return {};
  }
}

/// The RDMA device whose port serves the interface; empty if there is none.
fs::path rdma_device(const std::string& interface, const fs::path& root) {
  std::error_code error;
  for (fs::directory_iterator entry(root / "sys/class/infiniband", error), end;
       !error && entry != end; entry.increment(error)) {
    if (fs::exists(entry->path() / "device/net" / interface, error)) return entry->path();
  }
  return {};
}

}  // namespace

std::vector<Interface> interfaces() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(first, ::freeifaddrs);
  std::vector<Interface> out;
  std::vector<Interface> loopback;
  for (const ifaddrs* one = list.get(); one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_UP) == 0) continue;
    std::array<char, INET_ADDRSTRLEN> address{};
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr,
                address.data(), address.size());
    ((one->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : out)
        .push_back({one->ifa_name, address.data()});
  }
  out.insert(out.end(), loopback.begin(), loopback.end());
  return out;
}

Interface choose_interface(std::string_view wanted, const std::vector<Interface>& all) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Interface& one) { return fits(wanted, one); });
  if (found != all.end()) return *found;
  std::vector<std::string> names;
  for (const Interface& one : all) names.push_back(text(one.name, " (", one.address, ")"));
  throw Error(
      Code::invalid_argument,
      text("--interface '", wanted, "' is no interface of this machine, nor a network of one"),
      text("there are: ", core::joined(names)));
}

Interface interface_of(std::string_view address, const std::vector<Interface>& all) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Interface& one) { return one.address == address; });
  return found == all.end() ? Interface{} : *found;
}

std::string transport_text(const std::string& interface, const fs::path& root) {
  const fs::path device = rdma_device(interface, root);
  if (!device.empty()) {
    const std::string layer = read_or_nothing(device / "ports/1/link_layer");
    const std::string rate = read_or_nothing(device / "ports/1/rate");  // "200 Gb/sec (4X HDR)"
    const std::string kind = layer == "Ethernet" ? "RoCE" : "InfiniBand";
    return text(interface, ", ", kind, rate.empty() ? "" : ", " + rate.substr(0, rate.find(" (")));
  }
  const auto speed =
      core::parse_integer(read_or_nothing(root / "sys/class/net" / interface / "speed"));
  std::string words = interface + ", TCP";
  if (speed && *speed >= 1000)
    words += text(", ", *speed / 1000, " Gbit/s");
  else if (speed && *speed > 0)
    words += text(", ", *speed, " Mbit/s");
  return words;
}

}  // namespace yoke::cluster
