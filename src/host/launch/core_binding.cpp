#include "yoke/launch/core_binding.hpp"

#include <sched.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::launch {
namespace {

namespace fs = std::filesystem;
using Cores = std::vector<int>;

std::string read_or_nothing(const fs::path& path) {
  try {
    return std::string(core::trimmed(core::read_file(path)));
  } catch (const Error&) {
    return {};
  }
}

Cores common(const Cores& a, const Cores& b) {
  Cores out;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

/// "00000000:1B:00.0" is 0000:1b:00.0 in sysfs.
std::string sysfs_name(std::string bus_id) {
  std::transform(bus_id.begin(), bus_id.end(), bus_id.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::size_t colon = bus_id.find(':');
  return colon == 8 ? bus_id.substr(4) : bus_id;
}

std::optional<std::size_t> node_of_card(const std::string& bus_id, const fs::path& root) {
  const auto node = core::parse_integer(
      read_or_nothing(root / "sys/bus/pci/devices" / sysfs_name(bus_id) / "numa_node"));
  if (!node || *node < 0) return std::nullopt;  // -1: the machine does not say
  return static_cast<std::size_t>(*node);
}

std::vector<Cores> nodes_of(const fs::path& root, const Cores& allowed) {
  std::vector<Cores> nodes;
  while (true) {
    const std::string list = read_or_nothing(root / "sys/devices/system/node" /
                                             core::text("node", nodes.size()) / "cpulist");
    if (list.empty()) return nodes;
    nodes.push_back(common(core_list(list), allowed));
  }
}

}  // namespace

std::vector<int> core_list(const std::string& whole) {
  Cores cores;
  for (const std::string& item : core::split(core::trimmed(whole), ',')) {
    const std::size_t dash = item.find('-');
    const auto low = core::parse_integer(item.substr(0, dash));
    const auto high = dash == std::string::npos ? low : core::parse_integer(item.substr(dash + 1));
    if (!low || !high || *low < 0 || *high < *low || *high >= CPU_SETSIZE)
      throw Error(Code::corrupt_data, core::text("list of cores '", whole, "'"));
    for (std::int64_t core = *low; core <= *high; ++core) cores.push_back(static_cast<int>(core));
  }
  std::sort(cores.begin(), cores.end());
  return cores;
}

std::vector<int> allowed_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  Cores cores;
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &mask)) cores.push_back(core);
  }
  return cores;
}

std::vector<std::vector<int>> shared_cores(int ranks, const Cores& allowed) {
  std::vector<Cores> out;
  const auto count = static_cast<std::size_t>(std::max(1, ranks));
  for (std::size_t rank = 0; rank < count && !allowed.empty(); ++rank) {
    const std::size_t begin = rank * allowed.size() / count;
    const std::size_t end = std::max(begin + 1, (rank + 1) * allowed.size() / count);
    out.emplace_back(allowed.begin() + static_cast<std::ptrdiff_t>(begin),
                     allowed.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return out;
}

std::vector<std::vector<int>> numa_cores(int ranks, const std::vector<std::string>& bus_ids,
                                         const Cores& allowed, const fs::path& root) {
  std::vector<Cores> out(static_cast<std::size_t>(std::max(0, ranks)));
  std::vector<Cores> nodes = nodes_of(root, allowed);
  std::vector<std::size_t> usable;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].empty()) usable.push_back(i);
  }
  if (usable.size() < 2) return out;
  for (std::size_t rank = 0; rank < out.size(); ++rank) {
    std::optional<std::size_t> node;
    if (rank < bus_ids.size()) node = node_of_card(bus_ids[rank], root);
    if (!node || *node >= nodes.size() || nodes[*node].empty())
      node = usable[rank * usable.size() / out.size()];
    out[rank] = nodes[*node];
  }
  return out;
}

}  // namespace yoke::launch
