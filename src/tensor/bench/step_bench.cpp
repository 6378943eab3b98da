#include "yoke/bench/step_bench.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>

#include "contender.hpp"
#include "yoke/comm/device.hpp"
#include "yoke/comm/world.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/kernels/kernels.hpp"
#include "yoke/profile/recorder.hpp"

namespace yoke::bench {
namespace {

using core::Json;
using core::text;

constexpr int kProfiled = 3;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Timing {
  std::vector<std::vector<double>> block_ms;  // [contender][block]: ms a step
  long long first_step_ns = 0;                // wall clock at the end of the first step
};

Timing time_in_turn(const StepBenchOptions& options, comm::World& world,
                    std::vector<std::unique_ptr<Contender>>& contenders) {
  Timing timing;
  contenders[0]->time(1);
  timing.first_step_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                             std::chrono::system_clock::now().time_since_epoch())
                             .count();
  for (const auto& contender : contenders) contender->time(options.warmup - 1);
  // On a card a block of ten is timed whole: a wait after each step would hide the queue that real
  // training has.
  const int block = world.device().is_cuda() ? 10 : 1;
  timing.block_ms.resize(contenders.size());
  for (int done = 0; done < options.steps; done += block) {
    for (std::size_t i = 0; i < contenders.size(); ++i)
      timing.block_ms[i].push_back(contenders[i]->time(block) * 1000.0 / block);
  }
  return timing;
}

Json profile_of(Contender& contender, const StepBenchOptions& options, double step_ms,
                const comm::World& world) {
  profile::Recorder recorder({.host = !world.device().is_cuda()});
  contender.time(kProfiled);
  recorder.stop();
  if (!options.trace.empty() && world.is_main()) recorder.save(options.trace);
  const profile::Summary summary = profile::summarise(recorder.events(), kProfiled);
  Json json = profile::to_json(summary);
  // Of the step as it was timed: recording slows the host down.
  json["utilisation"] = std::min(1.0, summary.busy_ms / step_ms);
  return json;
}

std::int64_t whole(const std::string& option, const std::string& value) {
  const auto number = core::parse_integer(value);
  if (number && *number > 0 && *number < 1'000'000) return *number;
  throw Error(Code::invalid_argument, text(option, " '", value, "' is no number from 1 on"));
}

}  // namespace

StepBenchOptions step_bench_options(const std::vector<std::string>& words) {
  StepBenchOptions options;
  const auto is_on = [](const std::string& value) { return value == "on"; };
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const std::string& option = words[i];
    if (i + 1 == words.size()) {
      throw Error(Code::invalid_argument, text("yoke-bench: ", option, " needs a value"));
    }
    const std::string& value = words[i + 1];
    if (option == "--model") {
      options.model = value;
    } else if (option == "--ways") {
      options.ways = core::split(value, ',');
    } else if (option == "--precision") {
      options.precision = value;
    } else if (option == "--kernels") {
      options.kernels = is_on(value);
    } else if (option == "--profile") {
      options.profile = is_on(value);
    } else if (option == "--all-ranks") {
      options.all_ranks = is_on(value);
    } else if (option == "--trace") {
      options.trace = value;
      options.profile = true;
    } else if (option == "--batch") {
      options.batch = whole(option, value);
    } else if (option == "--devices") {
      options.devices = static_cast<int>(whole(option, value));
    } else if (option == "--steps") {
      options.steps = static_cast<int>(whole(option, value));
    } else if (option == "--warmup") {
      options.warmup = static_cast<int>(whole(option, value));
    } else {
      throw Error(Code::invalid_argument, text("yoke-bench: ", option, " is not known"));
    }
  }
  return options;
}

Json run_step_bench(const StepBenchOptions& options, comm::World& world) {
  kernels::enable(options.kernels);
  const Inputs inputs = make_inputs(options, world);
  std::vector<std::unique_ptr<Contender>> contenders;
  for (const std::string& way : options.ways)
    contenders.push_back(std::make_unique<Contender>(way, options, world, inputs));
  const Timing timing = time_in_turn(options, world, contenders);
  const double step_ms = median(timing.block_ms[0]);
  const auto memory = comm::device_memory(world.device());
  Json in_turn = Json::object();
  for (std::size_t i = 0; i < contenders.size(); ++i)
    in_turn[contenders[i]->way()] = median(timing.block_ms[i]);
  Json result{
      {"step_ms", step_ms},
      {"in_turn_ms", in_turn},
      {"batch", options.batch},
      {"ranks", world.size()},
      {"images_per_second", 1000.0 * static_cast<double>(options.batch * world.size()) / step_ms},
      {"first_step_ns", timing.first_step_ns},
      {"loss", contenders[0]->loss()},
      {"peak_bytes", memory.peak},
      {"allocated_bytes", memory.allocated},
      {"reserved_bytes", memory.reserved},
      {"replays", contenders[0]->replays()},
      {"parameter_bytes", contenders[0]->parameter_bytes()},
      {"backend", world.group().backend()},
      {"device", world.device().str()},
      {"device_uuid", comm::device_uuid(world.device())}};
  if (!contenders[0]->obstacle().empty()) result["not_captured"] = contenders[0]->obstacle();
  if (options.profile) result["profile"] = profile_of(*contenders[0], options, step_ms, world);
  return result;
}

}  // namespace yoke::bench
