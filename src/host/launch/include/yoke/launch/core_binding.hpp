#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace yoke::launch {

/// Reads a list as sysfs writes it: "0-3,8". Errors: corrupt_data, quoting it.
[[nodiscard]] std::vector<int> core_list(const std::string& text);

/// The cores that this process may use, by its affinity mask.
[[nodiscard]] std::vector<int> allowed_cores();

/// An equal share of `allowed` for each rank, neighbours together; every rank has one at least.
[[nodiscard]] std::vector<std::vector<int>> shared_cores(int ranks,
                                                         const std::vector<int>& allowed);

/// For each rank the cores of its card's own NUMA node, as the machine's sysfs has it, as far as
/// `allowed`. `bus_ids`: of the ranks' cards, in NVML's form; without cards (or where sysfs does
/// not know) the ranks are spread over the nodes. A machine of one node gives empty lists: no
/// binding.
[[nodiscard]] std::vector<std::vector<int>> numa_cores(int ranks,
                                                       const std::vector<std::string>& bus_ids,
                                                       const std::vector<int>& allowed,
                                                       const std::filesystem::path& root = "/");

}  // namespace yoke::launch
