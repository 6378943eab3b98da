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
#include <string>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>

#include "yoke/comm/device.hpp"
#include "yoke/comm/world.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/models/models.hpp"
#include "yoke/optim/optim.hpp"
#include "yoke/parallel/data_parallel.hpp"
#include "yoke/parallel/distributed_data_parallel.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Model = std::shared_ptr<yoke::models::ImageClassifier>;

struct Settings {
  std::string model = "mlp";
  std::string parallel = "ddp";  // ddp, dp, none; several between commas are timed in turn
  std::string precision = "fp32";
  std::int64_t batch = 64;
  int steps = 100;
  int warmup = 10;
};

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
  settings.batch = integer("--batch", settings.batch);
  settings.steps = static_cast<int>(integer("--steps", settings.steps));
  settings.warmup = static_cast<int>(integer("--warmup", settings.warmup));
  return settings;
}

struct Inputs {
  at::Tensor images;  // [batch, channels, side, side]
  at::Tensor labels;  // [batch] int64
};

Inputs make_inputs(const Settings& settings, const yoke::World& world) {
  const bool small = settings.model == "mlp" || settings.model == "small-cnn";
  const std::int64_t channels = small ? 1 : 3;
  const std::int64_t side = small ? 28 : 224;
  const std::int64_t classes = small ? 10 : 1000;
  const std::int64_t numel = settings.batch * channels * side * side;
  // Cheap and equal in every language: no generator to agree on.
  at::Tensor images = at::sin(at::arange(numel, at::kFloat) * 0.01 + world.rank())
                          .view({settings.batch, channels, side, side});
  at::Tensor labels = (at::arange(settings.batch, at::kLong) * 7 + world.rank()).remainder(classes);
  images = images.to(world.device());
  if (!small) images = images.contiguous(at::MemoryFormat::ChannelsLast);
  return {images, labels.to(world.device())};
}

// The same start in every language, so that losses can be compared: weights from a formula, norms
// as the identity.
void fill_parameters(yoke::models::ImageClassifier& model) {
  const at::NoGradGuard no_grad;
  for (auto& item : model.named_parameters()) {
    at::Tensor& parameter = item.value();
    if (parameter.dim() < 2) {
      parameter.fill_(item.key().ends_with("bias") ? 0.0 : 1.0);
      continue;
    }
    const auto fan = static_cast<double>(parameter.numel() / parameter.size(0));
    const at::Tensor wave = at::cos(at::arange(parameter.numel(), at::kFloat) * 0.7);
    parameter.copy_((wave * (1.4 / std::sqrt(fan))).view(parameter.sizes()));
  }
}

class Autocast {
 public:
  Autocast(bool on, at::Device device) : on_(on), type_(device.type()) {
    if (!on_) return;
    at::autocast::set_autocast_enabled(type_, true);
    at::autocast::set_autocast_dtype(type_, at::kBFloat16);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (!on_) return;
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(type_, false);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool on_;
  at::DeviceType type_;
};

// One way to train: its own model, wrapper and optimizer, on data that all share.
class Contender {
 public:
  Contender(std::string parallel, const Settings& settings, yoke::World& world,
            const Inputs& inputs)
      : name_(std::move(parallel)), settings_(settings), world_(world), inputs_(inputs) {
    const bool small = settings.model == "mlp" || settings.model == "small-cnn";
    model_ = yoke::models::make(settings.model,
                                {.num_classes = small ? 10 : 1000, .in_channels = small ? 1 : 3});
    fill_parameters(*model_);
    model_->to(world.device());
    if (!small) yoke::models::to_channels_last(*model_);
    optimizer_.emplace(model_->named_parameters(),
                       yoke::optim::SGDOptions{.lr = 0.001, .momentum = 0.9});
    if (name_ == "ddp") distributed_.emplace(model_, world);
    if (name_ == "dp") replicated_.emplace(model_, data_parallel_options(world.device()));
  }

  void step() {
    optimizer_->zero_grad();
    {
      const Autocast autocast(settings_.precision == "bf16", world_.device());
      loss_ = at::cross_entropy_loss(forward(inputs_.images), inputs_.labels);
    }
    loss_.backward();
    optimizer_->step();
  }

  // Seconds for `count` steps with nothing left to do.
  double time(int count) {
    const auto begin = Clock::now();
    for (int i = 0; i < count; ++i) step();
    yoke::comm::synchronize(world_.device());
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] double loss() const { return loss_.item<double>(); }
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
  const Settings& settings_;
  yoke::World& world_;
  const Inputs& inputs_;
  Model model_;
  std::optional<yoke::optim::SGD> optimizer_;
  std::optional<yoke::DistributedDataParallel<Model>> distributed_;
  std::optional<yoke::DataParallel<Model>> replicated_;
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
                          ", \"parameter_bytes\": ", contenders[0]->parameter_bytes(),
                          ", \"backend\": \"", world.group().backend(), "\"}");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Settings settings = parse(argc, argv);
    yoke::World world = yoke::World::from_environment();
    const Inputs inputs = make_inputs(settings, world);
    std::vector<std::unique_ptr<Contender>> contenders;
    for (const std::string& name : yoke::core::split(settings.parallel, ','))
      contenders.push_back(std::make_unique<Contender>(name, settings, world, inputs));
    const Timing timing = time_in_turn(settings, world, contenders);
    if (world.rank() == 0) std::puts(result_line(settings, world, contenders, timing).c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "yoke-bench-step: %s\n", error.what());
    return 1;
  }
  return 0;
}
