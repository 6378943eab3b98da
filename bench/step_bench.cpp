// Times training steps on data that lies ready: what the gradient engine costs, and nothing of the
// loader's.
//
//   yoke launch --ranks 2 -- libexec/yoke/yoke-bench-step --model mlp --batch 8 --steps 200
//   --parallel ddp
//
// Rank 0 prints one JSON object: median step in ms, images/s over all ranks, wall clock of the
// first step's end, peak memory, and the loss after the last step, by which bench/run checks that
// rivals compute the same thing.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
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
  std::string parallel = "ddp";  // ddp, dp, none
  std::string precision = "fp32";
  std::int64_t batch = 64;
  int steps = 100;
  int warmup = 10;
  int rounds = 1;  // timed blocks; each gives one median
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
  settings.rounds = static_cast<int>(integer("--rounds", settings.rounds));
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

struct Timing {
  std::vector<double> medians_ms;
  long long first_step_ns = 0;  // wall clock at the end of the first step
  double loss = 0;
  std::size_t parameter_bytes = 0;
};

template <class Forward>
Timing time_steps(const Settings& settings, yoke::World& world, yoke::optim::SGD& optimizer,
                  Forward forward) {
  const Inputs inputs = make_inputs(settings, world);
  at::Tensor loss;
  const auto step = [&] {
    optimizer.zero_grad();
    {
      const Autocast autocast(settings.precision == "bf16", world.device());
      loss = at::cross_entropy_loss(forward(inputs.images), inputs.labels);
    }
    loss.backward();
    optimizer.step();
  };
  Timing timing;
  step();
  yoke::comm::synchronize(world.device());
  timing.first_step_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                             std::chrono::system_clock::now().time_since_epoch())
                             .count();
  for (int i = 1; i < settings.warmup; ++i) step();
  yoke::comm::synchronize(world.device());
  for (int round = 0; round < settings.rounds; ++round) {
    std::vector<double> times;
    // On a card a block of ten is timed whole: a wait after each step would hide the queue that
    // real training has.
    const int block = world.device().is_cuda() ? 10 : 1;
    for (int done = 0; done < settings.steps; done += block) {
      const auto begin = Clock::now();
      for (int i = 0; i < block; ++i) step();
      yoke::comm::synchronize(world.device());
      times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count() /
                      block);
    }
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                     times.end());
    timing.medians_ms.push_back(times[times.size() / 2]);
  }
  timing.loss = loss.item<double>();
  return timing;
}

Timing run(const Settings& settings, yoke::World& world) {
  const bool small = settings.model == "mlp" || settings.model == "small-cnn";
  Model model = yoke::models::make(
      settings.model, {.num_classes = small ? 10 : 1000, .in_channels = small ? 1 : 3});
  fill_parameters(*model);
  model->to(world.device());
  if (!small) yoke::models::to_channels_last(*model);
  std::size_t parameter_bytes = 0;
  for (const at::Tensor& parameter : model->parameters()) parameter_bytes += parameter.nbytes();
  yoke::optim::SGD optimizer(model->named_parameters(), {.lr = 0.001, .momentum = 0.9});
  Timing timing;
  if (settings.parallel == "ddp") {
    yoke::DistributedDataParallel parallel(model, world);
    timing =
        time_steps(settings, world, optimizer, [&](const at::Tensor& x) { return parallel(x); });
  } else if (settings.parallel == "dp") {
    yoke::parallel::DataParallelOptions options;
    if (world.device().is_cuda()) options.device_ids = {0};
    yoke::DataParallel parallel(model, options);
    timing =
        time_steps(settings, world, optimizer, [&](const at::Tensor& x) { return parallel(x); });
  } else {
    timing = time_steps(settings, world, optimizer,
                        [&](const at::Tensor& x) { return model->forward(x); });
  }
  timing.parameter_bytes = parameter_bytes;
  return timing;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Settings settings = parse(argc, argv);
    yoke::World world = yoke::World::from_environment();
    const Timing timing = run(settings, world);
    const auto memory = yoke::comm::device_memory(world.device());
    if (world.rank() == 0) {
      std::string medians;
      for (const double median : timing.medians_ms)
        medians += yoke::core::text(medians.empty() ? "" : ", ", median);
      std::printf(
          "{\"step_ms\": [%s], \"batch\": %lld, \"ranks\": %d, \"first_step_ns\": %lld, \"loss\": "
          "%.6f, \"peak_bytes\": %llu, \"parameter_bytes\": %zu, \"backend\": \"%s\"}\n",
          medians.c_str(), static_cast<long long>(settings.batch), world.size(),
          timing.first_step_ns, timing.loss, static_cast<unsigned long long>(memory.peak),
          timing.parameter_bytes, world.group().backend().c_str());
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "yoke-bench-step: %s\n", error.what());
    return 1;
  }
  return 0;
}
