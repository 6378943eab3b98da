#include "yoke/parallel/data_parallel.hpp"

#include <algorithm>
#include <set>

#include "yoke/comm/device.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::parallel {
namespace {

using core::text;

constexpr std::size_t kManyDevices =
    4;                              // beyond it one process's launches and gathers are what limits
constexpr double kDominates = 1.2;  // the first device holds this much more than any other

void require_distinct(const std::vector<int>& ids) {
  std::set<int> seen;
  for (const int id : ids) {
    if (id < 0)
      throw Error(Code::invalid_argument, text("DataParallel: device_ids name device ", id),
                  "they count from 0");
    if (!seen.insert(id).second) {
      throw Error(Code::invalid_argument,
                  text("DataParallel: device_ids name device ", id, " twice"),
                  "one replica per device: name each once");
    }
  }
}

std::vector<at::Device> cards_for(std::vector<int> ids, at::Device home) {
  const int cards = comm::cuda_device_count();
  if (ids.empty()) {
    for (int card = 0; card < cards; ++card) ids.push_back(card);
  }
  std::vector<at::Device> devices;
  for (const int id : ids) {
    if (id >= cards) {
      throw Error(Code::invalid_argument,
                  text("DataParallel: device_ids name card ", id, ": torch sees ", cards),
                  text("name cards 0 to ", cards - 1));
    }
    devices.emplace_back(at::kCUDA, static_cast<at::DeviceIndex>(id));
  }
  if (devices.front() != home) {
    throw Error(
        Code::invalid_argument,
        text("DataParallel: the module lies on ", home.str(), ", device_ids begin with ",
             devices.front().str()),
        text("write model->to(torch::Device(torch::kCUDA, ", ids.front(), ")); before wrapping"));
  }
  return devices;
}

int nodes_of_this_job() {
  try {
    return core::rank_facts(core::environment()).node_count;
  } catch (const Error&) {
    return 1;  // contradicting variables are World's to report; DataParallel does not need them
  }
}

}  // namespace

std::vector<at::Device> replica_devices(const NamedTensors& parameters,
                                        const DataParallelOptions& options) {
  require_distinct(options.device_ids);
  const at::Device home = parameters.front().second.device();
  for (const auto& [name, parameter] : parameters) {
    if (parameter.device() == home) continue;
    throw Error(Code::invalid_argument,
                text("DataParallel: the module lies on several devices: ", parameters.front().first,
                     " on ", home.str(), ", ", name, " on ", parameter.device().str()),
                "move it whole to the first of device_ids before wrapping");
  }
  if (home.is_cuda()) return cards_for(options.device_ids, home);
  return std::vector<at::Device>(std::max<std::size_t>(1, options.device_ids.size()), home);
}

at::Device gather_device(const std::vector<at::Device>& devices,
                         const DataParallelOptions& options) {
  if (!options.output_device || devices.front().is_cpu()) return devices.front();
  const at::Device device{at::kCUDA, static_cast<at::DeviceIndex>(*options.output_device)};
  if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
    throw Error(
        Code::invalid_argument,
        text("DataParallel: output_device ", *options.output_device, " is not among device_ids"),
        "name one of them");
  }
  return device;
}

std::string replica_name(at::Device device, std::size_t replica) {
  return device.is_cpu() ? text("cpu#", replica) : device.str();
}

std::string data_parallel_advice(const AdviceFacts& facts) {
  const std::string use = "use DistributedDataParallel: ";
  if (facts.nodes > 1) {
    return text(use, "the job has ", facts.nodes,
                " nodes, and DataParallel reaches the devices of one process only");
  }
  if (facts.devices > kManyDevices) {
    return text(use, "one process drives ", facts.devices, " devices; beyond ", kManyDevices,
                " its launches and copies through the first device limit all of them");
  }
  if (facts.other_device_bytes > 0 &&
      static_cast<double>(facts.first_device_bytes) >
          kDominates * static_cast<double>(facts.other_device_bytes)) {
    return text(use, "the first device holds ", core::bytes_text(facts.first_device_bytes),
                ", the others at most ", core::bytes_text(facts.other_device_bytes),
                ", so it limits the batch for all");
  }
  return {};
}

void advise_at_start(std::size_t devices) {
  const std::string advice =
      data_parallel_advice({.devices = devices, .nodes = nodes_of_this_job()});
  if (!advice.empty()) core::say(core::Level::info, advice);
}

std::string advice_now(const std::vector<ReplicaReport>& replicas) {
  AdviceFacts facts{.devices = replicas.size(), .nodes = nodes_of_this_job()};
  facts.first_device_bytes = replicas.front().memory_peak;
  for (std::size_t i = 1; i < replicas.size(); ++i) {
    facts.other_device_bytes = std::max(facts.other_device_bytes, replicas[i].memory_peak);
  }
  return data_parallel_advice(facts);
}

}  // namespace yoke::parallel
