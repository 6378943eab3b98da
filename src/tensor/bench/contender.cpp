#include "contender.hpp"

#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

#include <ATen/Functions.h>

#include "yoke/comm/device.hpp"
#include "yoke/comm/world.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::bench {
namespace {

constexpr double kImageRange = 1.7;  // of a uniform distribution with deviation 1, about

bool is_small(const std::string& model) { return model == "mlp" || model == "small-cnn"; }

std::int64_t classes(const std::string& model) { return is_small(model) ? 10 : 1000; }
std::int64_t channels(const std::string& model) { return is_small(model) ? 1 : 3; }

// Numbers in [-1, 1) that look random and are the same in every language: no generator to agree on.
// [count] float32
at::Tensor noise(std::int64_t count, std::int64_t seed) {
  const at::Tensor waves = at::sin(at::arange(count, at::kDouble) * 12.9898 + seed) * 43758.5453;
  return ((waves - waves.floor()) * 2 - 1).to(at::kFloat);
}

// The same start in every language, so that losses can be compared: Kaiming's range, norms as the
// identity.
void fill_parameters(models::ImageClassifier& model) {
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
    const at::Tensor values = noise(parameter.numel(), seed) * std::sqrt(6.0 / fan);
    parameter.copy_(values.view(parameter.sizes()));
  }
}

parallel::DataParallelOptions data_parallel_options(at::Device device, int devices) {
  parallel::DataParallelOptions options;
  if (!device.is_cuda()) return options;
  options.device_ids.resize(static_cast<std::size_t>(devices));
  std::iota(options.device_ids.begin(), options.device_ids.end(), 0);
  return options;
}

}  // namespace

Inputs make_inputs(const StepBenchOptions& options, const comm::World& world) {
  const std::int64_t side = is_small(options.model) ? 28 : 224;
  const std::int64_t depth = channels(options.model);
  const std::int64_t numel = options.batch * depth * side * side;
  at::Tensor images =
      (noise(numel, world.rank()) * kImageRange).view({options.batch, depth, side, side});
  const at::Tensor labels =
      (at::arange(options.batch, at::kLong) * 7 + world.rank()).remainder(classes(options.model));
  images = images.to(world.device());
  if (!is_small(options.model)) images = images.contiguous(at::MemoryFormat::ChannelsLast);
  return {images, labels.to(world.device())};
}

Contender::Contender(std::string way, const StepBenchOptions& options, comm::World& world,
                     const Inputs& inputs)
    : way_(std::move(way)), inputs_(inputs) {
  const std::string parallel = way_.substr(0, way_.find('+'));
  if (parallel != "none" && parallel != "ddp" && parallel != "dp") {
    throw Error(Code::not_found, core::text("time '", way_, "'"), "known: none, ddp, dp");
  }
  model_ = models::make(options.model, {.num_classes = classes(options.model),
                                        .in_channels = channels(options.model)});
  fill_parameters(*model_);
  model_->to(world.device());
  if (!is_small(options.model)) models::to_channels_last(*model_);
  optimizer_.emplace(model_->named_parameters(), optim::SGDOptions{.lr = 0.001, .momentum = 0.9});
  if (parallel == "ddp") distributed_.emplace(model_, world);
  if (parallel == "dp") {
    replicated_.emplace(model_, data_parallel_options(world.device(), options.devices));
  }
  step_.emplace(
      [this](const std::vector<at::Tensor>& batch) {
        return at::cross_entropy_loss(forward(batch[0]), batch[1]);
      },
      *optimizer_, world,
      train::StepOptions{.precision = precision::precision_from_name(options.precision),
                         .capture = way_.ends_with("+graph")});
}

void Contender::step() { loss_ = (*step_)({inputs_.images, inputs_.labels}); }

double Contender::time(int count) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  for (int i = 0; i < count; ++i) step();
  comm::synchronize(inputs_.images.device());
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double Contender::loss() const { return loss_.item<double>(); }

std::size_t Contender::parameter_bytes() const {
  std::size_t bytes = 0;
  for (const at::Tensor& parameter : model_->parameters()) bytes += parameter.nbytes();
  return bytes;
}

at::Tensor Contender::forward(const at::Tensor& x) {
  if (distributed_) return (*distributed_)(x);
  if (replicated_) return (*replicated_)(x);
  return model_->forward(x);
}

}  // namespace yoke::bench
