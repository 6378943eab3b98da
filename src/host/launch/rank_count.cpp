#include "yoke/launch/rank_count.hpp"

#include <cctype>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

#include "yoke/core/environment.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"

namespace yoke::launch {
namespace {

namespace fs = std::filesystem;
using core::text;

constexpr int kMostRanks = 4096;  // more is a slip of the pen

/// Device files of NVIDIA's driver: /dev/nvidia0, /dev/nvidia1 ...
int gpus_of_machine() {
  int count = 0;
  std::error_code error;
  for (fs::directory_iterator entry("/dev", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("nvidia") && core::parse_integer(std::string_view(name).substr(6)))
      ++count;
  }
  return count;
}

/// CUDA's rule: entries in order, up to the first that names no card or one that was named before.
int visible_gpus(int gpus, const core::EnvironmentMap& variables) {
  const auto filter = variables.find("CUDA_VISIBLE_DEVICES");
  if (filter == variables.end()) return gpus;
  std::set<std::string> seen;
  for (const std::string& item : core::split(filter->second, ',')) {
    const std::string name(core::trimmed(item));
    const auto index = core::parse_integer(name);
    const bool by_name = name.starts_with("GPU-") || name.starts_with("MIG-");
    if (!by_name && (!index || *index < 0 || *index >= gpus)) break;
    if (!seen.insert(name).second) return 0;
  }
  return static_cast<int>(seen.size());
}

RankCount one_per_gpu(const MachineResources& machine) { return {machine.gpus, {}}; }

RankCount one_per_core(const MachineResources& machine) { return {machine.cores, {}}; }

RankCount counted(int ranks, const std::string& option, const MachineResources& machine) {
  if (machine.gpus > 0 && ranks > machine.gpus) {
    const std::string filter =
        machine.gpu_filter.empty() ? "" : text(" (", machine.gpu_filter, ")");
    throw Error(Code::unsupported,
                text(option, " ", ranks, ": ", ranks, " processes and ", machine.gpus, " visible ",
                     machine.gpus == 1 ? "GPU" : "GPUs", filter),
                text("ask for ", machine.gpus,
                     " at most, or set CUDA_VISIBLE_DEVICES= (empty) to run on CPUs"));
  }
  if (machine.gpus <= ranks) return {ranks, {}};
  return {ranks, text(machine.gpus - ranks, " of ", machine.gpus,
                      " visible GPUs stay unused: ", option, " is ", ranks)};
}

}  // namespace

RankCount rank_count(std::string_view wanted, const std::string& option,
                     const MachineResources& machine) {
  if (wanted.empty()) return machine.gpus > 0 ? one_per_gpu(machine) : RankCount{};
  if (wanted == "cpu") return one_per_core(machine);
  if (wanted == "gpu") {
    if (machine.gpus > 0) return one_per_gpu(machine);
    const std::string filter =
        machine.gpu_filter.empty() ? "" : text(" (", machine.gpu_filter, ")");
    throw Error(Code::unsupported, text(option, " gpu: no GPU found", filter),
                text("give a number, as in ", option, " 2"));
  }
  if (wanted == "auto") {
    if (machine.gpus > 0) return one_per_gpu(machine);
    RankCount count = one_per_core(machine);
    count.notice = text(option, " auto: no GPU found, one rank per core: ", count.ranks);
    return count;
  }
  const auto number = core::parse_integer(wanted);
  if (!number || *number < 1 || *number > kMostRanks) {
    throw Error(Code::invalid_argument, text(option, " '", wanted, "' is not a number of ranks"),
                text("allowed: a number from 1 to ", kMostRanks, ", gpu, cpu, auto"));
  }
  return counted(static_cast<int>(*number), option, machine);
}

MachineResources machine_resources() {
  const core::EnvironmentMap variables = core::environment();
  MachineResources machine;
  machine.gpus = visible_gpus(gpus_of_machine(), variables);
  if (const auto filter = variables.find("CUDA_VISIBLE_DEVICES"); filter != variables.end()) {
    machine.gpu_filter = "CUDA_VISIBLE_DEVICES=" + filter->second;
  }
  machine.cores = core::usable_cores();
  return machine;
}

}  // namespace yoke::launch
