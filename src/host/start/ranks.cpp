#include "yoke/start/ranks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::start {
namespace {

using core::text;
using settings::Parallel;

/// How the user called the number of ranks, for messages.
std::string option_name(const settings::Settings& settings) {
  const settings::Origin& origin = settings.setting("ranks").origin;
  if (origin.source == settings::Source::flag || !settings.is_set("ranks")) return "--ranks";
  return origin.source == settings::Source::variable ? origin.name
                                                     : text("ranks (", origin.text(), ")");
}

int count_ranks(const Request& request, const launch::MachineResources& machine) {
  const settings::TrainSettings& values = request.values;
  if (values.parallel != Parallel::ddp) return 1;
  std::string wanted;
  std::string option = option_name(request.settings);
  if (values.ranks > 0) {
    wanted = std::to_string(values.ranks);
  } else if (!values.device_ids.empty()) {
    wanted = std::to_string(values.device_ids.size());
    option = "--device-ids, that is --ranks";
  }
  const launch::RankCount count = launch::rank_count(wanted, option, machine);
  if (!count.notice.empty() && values.device_ids.empty())
    core::say(core::Level::info, count.notice);
  return count.ranks;
}

/// CUDA_VISIBLE_DEVICES for `ids`, which count the devices that are visible now.
std::string visible_devices(const std::vector<int>& ids, const launch::MachineResources& machine,
                            const core::EnvironmentMap& variables) {
  const std::string filter = core::value_or(variables, "CUDA_VISIBLE_DEVICES");
  const std::vector<std::string> shown =
      filter.empty() ? std::vector<std::string>{} : core::split(filter, ',');
  std::vector<std::string> names;
  for (const int id : ids) {
    if (id >= machine.gpus) {
      throw Error(Code::unsupported,
                  text("--device-ids names device ", id, ": this machine shows ", machine.gpus),
                  text("name devices 0 to ", machine.gpus - 1));
    }
    const auto index = static_cast<std::size_t>(id);
    names.push_back(index < shown.size() ? std::string(core::trimmed(shown[index]))
                                         : std::to_string(id));
  }
  return core::joined(names, ",");
}

}  // namespace

bool is_rank(const core::EnvironmentMap& variables) {
  const core::RankFacts facts = core::rank_facts(variables);
  const bool placed = facts.launcher != "none" && facts.world_size > 1;
  return placed || facts.launcher == "yoke" || facts.launcher == "torchrun";
}

launch::LaunchOptions rank_options(const Request& request, const launch::MachineResources& machine,
                                   const core::EnvironmentMap& variables) {
  const settings::TrainSettings& values = request.values;
  launch::LaunchOptions options;
  options.ranks = count_ranks(request, machine);
  options.listen = true;
  options.zero_is_done = true;
  options.restart.limit = values.max_restarts;
  core::EnvironmentMap& extra = options.extra;
  if (values.backend != settings::Backend::detect)
    extra["YOKE_BACKEND"] = request.settings.text("backend");
  extra["YOKE_TIMEOUT"] =
      std::to_string(std::max(1L, std::lround(std::ceil(values.timeout_seconds))));
  if (values.threads > 0) extra["OMP_NUM_THREADS"] = std::to_string(values.threads);
  // DataParallel picks its devices itself; the others take the first ones that they see.
  if (values.parallel != Parallel::dp && !values.device_ids.empty() && machine.gpus > 0) {
    extra["CUDA_VISIBLE_DEVICES"] = visible_devices(values.device_ids, machine, variables);
  }
  return options;
}

}  // namespace yoke::start
