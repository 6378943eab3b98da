// Times training steps on data that lies ready: what the gradient engine costs, and nothing of the
// loader's.
//
//   yoke launch --ranks 2 -- libexec/yoke/yoke-bench-step --model mlp --batch 8 --steps 200
//   --parallel ddp
//
// Rank 0 prints one JSON object: median step in ms (of the first way to train; in_turn_ms holds
// all), wall clock of the first step's end, peak memory, and the loss after the last step, by which
// bench/run checks that rivals compute the same thing.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include "yoke/comm/device.hpp"
#include "yoke/comm/world.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/kernels/kernels.hpp"
#include "yoke/models/models.hpp"
#include "yoke/optim/optim.hpp"
#include "yoke/parallel/data_parallel.hpp"
#include "yoke/parallel/distributed_data_parallel.hpp"
#include "yoke/train/step.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Model = std::shared_ptr<yoke::models::ImageClassifier>;

struct Settings {
  std::string model = "mlp";
  std::string parallel = "ddp";  // ddp, dp, none; several between commas are timed in turn; with
                                 // +graph the step is captured
  std::string precision = "fp32";
  bool kernels = true;  // fused ones of room kernels
  std::string profile;  // a file for the trace of kProfiled steps of the first way; empty: none
  std::int64_t batch = 64;
  int steps = 100;
  int warmup = 10;
};

// "ddp,none" -> "ddp+graph,none+graph"
std::string captured(const std::string& ways) {
  std::vector<std::string> names = yoke::core::split(ways, ',');
  for (std::string& name : names) name += "+graph";
  return yoke::core::joined(names, ",");
}

Settings parse(int argc, char** argv) {
  std::map<std::string, std::string> given;
  for (int i = 1; i + 1 < argc; i += 2) given[argv[i]] = argv[i + 1];
  Settings settings;
  const auto integer = [&](const char* key, std::int64_t fallback) {
    return given.count(key) ? yoke::core::parse_integer(given[key]).value() : fallback;
  };
  const auto word = [&](const char* key, const std::string& fallback) {
    return given.count(key) ? given[key] : fallback;
  };
  settings.model = word("--model", settings.model);
  settings.parallel = word("--parallel", settings.parallel);
  settings.precision = word("--precision", settings.precision);
  settings.profile = word("--profile", "");
  settings.kernels = word("--kernels", "on") == "on";
  if (word("--capture", "off") == "on") settings.parallel = captured(settings.parallel);
  settings.batch = integer("--batch", settings.batch);
  settings.steps = static_cast<int>(integer("--steps", settings.steps));
  settings.warmup = static_cast<int>(integer("--warmup", settings.warmup));
  return settings;
}

struct Inputs {
  at::Tensor images;  // [batch, channels, side, side]
  at::Tensor labels;  // [batch] int64
};

constexpr double kImageRange = 1.7;  // of a uniform distribution with deviation 1, about

// Numbers in [-1, 1) that look random and are the same in every language: no generator to agree on.
// [count] float32
at::Tensor noise(std::int64_t count, std::int64_t seed) {
  const at::Tensor waves = at::sin(at::arange(count, at::kDouble) * 12.9898 + seed) * 43758.5453;
  return ((waves - waves.floor()) * 2 - 1).to(at::kFloat);
}

Inputs make_inputs(const Settings& settings, const yoke::World& world) {
  const bool small = settings.model == "mlp" || settings.model == "small-cnn";
  const std::int64_t channels = small ? 1 : 3;
  const std::int64_t side = small ? 28 : 224;
  const std::int64_t classes = small ? 10 : 1000;
  const std::int64_t numel = settings.batch * channels * side * side;
  at::Tensor images =
      (noise(numel, world.rank()) * kImageRange).view({settings.batch, channels, side, side});
  at::Tensor labels = (at::arange(settings.batch, at::kLong) * 7 + world.rank()).remainder(classes);
  images = images.to(world.device());
  if (!small) images = images.contiguous(at::MemoryFormat::ChannelsLast);
  return {images, labels.to(world.device())};
}

// The same start in every language, so that losses can be compared: Kaiming's range, norms as the
// identity.
void fill_parameters(yoke::models::ImageClassifier& model) {
  const at::NoGradGuard no_grad;
  std::int64_t seed = 0;
  for (auto& item : model.named_parameters()) {
    at::Tensor& parameter = item.value();
    ++seed;
    if (parameter.dim() < 2) {
      parameter.fill_(item.key().ends_with("bias") ? 0.0 : 1.0);
      continue;
    }
    const auto fan = static_cast<double>(parameter.numel() / parameter.size(0));
    parameter.copy_(
        (noise(parameter.numel(), seed) * std::sqrt(6.0 / fan)).view(parameter.sizes()));
  }
}

// One way to train: its own model, wrapper and optimizer, on data that all share.
class Contender {
 public:
  Contender(std::string name, const Settings& settings, yoke::World& world, const Inputs& inputs)
      : name_(std::move(name)), inputs_(inputs) {
    const std::string parallel = name_.substr(0, name_.find('+'));
    const bool small = settings.model == "mlp" || settings.model == "small-cnn";
    model_ = yoke::models::make(settings.model,
                                {.num_classes = small ? 10 : 1000, .in_channels = small ? 1 : 3});
    fill_parameters(*model_);
    model_->to(world.device());
    if (!small) yoke::models::to_channels_last(*model_);
    optimizer_.emplace(model_->named_parameters(),
                       yoke::optim::SGDOptions{.lr = 0.001, .momentum = 0.9});
    if (parallel == "ddp") distributed_.emplace(model_, world);
    if (parallel == "dp") replicated_.emplace(model_, data_parallel_options(world.device()));
    step_.emplace(
        [this](const std::vector<at::Tensor>& batch) {
          return at::cross_entropy_loss(forward(batch[0]), batch[1]);
        },
        *optimizer_, world,
        yoke::train::StepOptions{
            .precision = yoke::precision::precision_from_name(settings.precision),
            .capture = name_.ends_with("+graph")});
  }

  void step() { loss_ = (*step_)({inputs_.images, inputs_.labels}); }

  // Seconds for `count` steps with nothing left to do.
  double time(int count) {
    const auto begin = Clock::now();
    for (int i = 0; i < count; ++i) step();
    yoke::comm::synchronize(inputs_.images.device());
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] double loss() const { return loss_.item<double>(); }
  [[nodiscard]] std::size_t replays() const { return step_->replays(); }
  [[nodiscard]] std::size_t parameter_bytes() const {
    std::size_t bytes = 0;
    for (const at::Tensor& parameter : model_->parameters()) bytes += parameter.nbytes();
    return bytes;
  }

 private:
  static yoke::parallel::DataParallelOptions data_parallel_options(at::Device device) {
    yoke::parallel::DataParallelOptions options;
    if (device.is_cuda()) options.device_ids = {0};
    return options;
  }

  at::Tensor forward(const at::Tensor& x) {
    if (distributed_) return (*distributed_)(x);
    if (replicated_) return (*replicated_)(x);
    return model_->forward(x);
  }

  std::string name_;
  const Inputs& inputs_;
  Model model_;
  std::optional<yoke::optim::SGD> optimizer_;
  std::optional<yoke::DistributedDataParallel<Model>> distributed_;
  std::optional<yoke::DataParallel<Model>> replicated_;
  std::optional<yoke::train::Step> step_;
  at::Tensor loss_;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Timing {
  std::vector<std::vector<double>> block_ms;  // [contender][block]: ms a step
  long long first_step_ns = 0;                // wall clock at the end of the first step
};

// Blocks of all contenders in turn: what slows the machine for a while slows each of them.
Timing time_in_turn(const Settings& settings, yoke::World& world,
                    std::vector<std::unique_ptr<Contender>>& contenders) {
  Timing timing;
  contenders[0]->time(1);
  timing.first_step_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                             std::chrono::system_clock::now().time_since_epoch())
                             .count();
  for (const auto& contender : contenders) contender->time(settings.warmup - 1);
  // On a card a block of ten is timed whole: a wait after each step would hide the queue that real
  // training has.
  const int block = world.device().is_cuda() ? 10 : 1;
  timing.block_ms.resize(contenders.size());
  for (int done = 0; done < settings.steps; done += block) {
    for (std::size_t i = 0; i < contenders.size(); ++i)
      timing.block_ms[i].push_back(contenders[i]->time(block) * 1000.0 / block);
  }
  return timing;
}

constexpr int kProfiled = 3;

// The device's side of some steps, as a trace that bench/trace_groups.py and Perfetto read.
void profile(Contender& contender, const std::string& file) {
  namespace profiler = torch::autograd::profiler;
  namespace impl = torch::profiler::impl;
  const impl::ProfilerConfig config(impl::ProfilerState::KINETO);
  const std::set<impl::ActivityType> activities{impl::ActivityType::CUDA};
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  contender.time(kProfiled);
  profiler::disableProfiler()->save(file);
}

std::string result_line(const Settings& settings, yoke::World& world,
                        const std::vector<std::unique_ptr<Contender>>& contenders,
                        const Timing& timing) {
  std::string in_turn;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    in_turn += yoke::core::text(i == 0 ? "" : ", ", "\"", contenders[i]->name(),
                                "\": ", median(timing.block_ms[i]));
  }
  const auto memory = yoke::comm::device_memory(world.device());
  return yoke::core::text("{\"step_ms\": ", median(timing.block_ms[0]), ", \"in_turn_ms\": {",
                          in_turn, "}, \"batch\": ", settings.batch, ", \"ranks\": ", world.size(),
                          ", \"first_step_ns\": ", timing.first_step_ns,
                          ", \"loss\": ", contenders[0]->loss(), ", \"peak_bytes\": ", memory.peak,
                          ", \"replays\": ", contenders[0]->replays(),
                          ", \"parameter_bytes\": ", contenders[0]->parameter_bytes(),
                          ", \"backend\": \"", world.group().backend(), "\"}");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Settings settings = parse(argc, argv);
    yoke::World world = yoke::World::from_environment();
    yoke::core::attach(std::make_shared<yoke::core::StreamConsole>(2));
    yoke::kernels::enable(settings.kernels);
    const Inputs inputs = make_inputs(settings, world);
    std::vector<std::unique_ptr<Contender>> contenders;
    for (const std::string& name : yoke::core::split(settings.parallel, ','))
      contenders.push_back(std::make_unique<Contender>(name, settings, world, inputs));
    const Timing timing = time_in_turn(settings, world, contenders);
    if (!settings.profile.empty()) profile(*contenders[0], settings.profile);
    if (world.rank() == 0) std::puts(result_line(settings, world, contenders, timing).c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "yoke-bench-step: %s\n", error.what());
    return 1;
  }
  return 0;
}
