#include "yoke/launch/rank_count.hpp"

#include "yoke/core/environment.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"
#include "yoke/device/host.hpp"
#include "yoke/device/visible.hpp"

namespace yoke::launch {
namespace {

using core::text;

constexpr int kMostRanks = 4096;  // more is a slip of the pen

/// What hides GPUs from the ranks, for messages.
std::string filter_text(const MachineResources& machine) {
  return machine.gpu_filter.empty() ? std::string("CUDA_VISIBLE_DEVICES not set")
                                    : machine.gpu_filter;
}

RankCount one_per_gpu(const MachineResources& machine) { return {machine.gpus, {}}; }

RankCount one_per_core(const MachineResources& machine) { return {machine.cores, {}}; }

RankCount counted(int ranks, const std::string& option, const MachineResources& machine) {
  if (machine.gpus > 0 && ranks > machine.gpus) {
    throw Error(Code::unsupported,
                text(option, " ", ranks, ": ", ranks, " processes and ", machine.gpus, " visible ",
                     machine.gpus == 1 ? "GPU" : "GPUs", " (", filter_text(machine), ")"),
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
    throw Error(Code::unsupported, text(option, " gpu: no GPU found (", filter_text(machine), ")"),
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
  machine.gpus = device::visible_gpu_count(variables);
  if (const auto filter = variables.find("CUDA_VISIBLE_DEVICES"); filter != variables.end()) {
    machine.gpu_filter = "CUDA_VISIBLE_DEVICES=" + filter->second;
  }
  machine.cores = device::usable_cores();
  return machine;
}

}  // namespace yoke::launch
