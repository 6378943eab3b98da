#include "yoke/train/trainer.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include "trainer_state.hpp"
#include "training_run.hpp"
#include "yoke/comm/device.hpp"
#include "yoke/comm/group.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/data/data_loader.hpp"
#include "yoke/models/layout.hpp"
#include "yoke/precision/autocast.hpp"

namespace yoke::train {
namespace {

using core::text;

struct Limit {
  const char* name;
  double value;
  double least;
};

void require_sane(const TrainerOptions& options) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const std::array limits{Limit{"epochs", number(options.epochs), 1},
                          Limit{"accumulate", number(options.accumulate), 1},
                          Limit{"log_every", number(options.log_every), 1},
                          Limit{"max_steps", number(options.max_steps), 0},
                          Limit{"eval_every", number(options.eval_every), 0},
                          Limit{"early_stop", number(options.early_stop), 0},
                          Limit{"clip_norm", options.clip_norm, 0}};
  for (const auto& [name, value, least] : limits) {
    if (value >= least) continue;
    throw Error(Code::invalid_argument, text("train: ", name, " is ", value),
                text("give ", least, " or more"));
  }
}

void take_defaults(TrainerOptions& options) {
  if (!options.loss && !options.metrics) options.metrics = accuracy;
  if (!options.loss) {
    options.loss = [](const at::Tensor& output, const at::Tensor& target) {
      return at::cross_entropy_loss(output, target);
    };
  }
}

}  // namespace

LossRecord::Sum TrainerState::over_ranks(const LossRecord::Sum& mine) const {
  at::Tensor sums = at::tensor({mine.loss, mine.rows}, at::kDouble);
  world.host_group().all_reduce(sums);
  return {sums[0].item<double>(), sums[1].item<double>()};
}

namespace {

// Sizes, the peak and what to change; torch's words hold what was asked for.
Error out_of_memory(const TrainerState& state, const data::DataLoader& loader,
                    const c10::OutOfMemoryError& error) {
  constexpr double kGibi = 1 << 30;
  const at::Device device = state.world.device();
  const comm::DeviceMemory memory = comm::device_memory(device);
  const std::string words = error.what_without_backtrace();
  const std::size_t begin = std::min(words.find("Tried to"), words.size());
  const std::string asked =
      begin == words.size() ? words : words.substr(begin, words.find(". ", begin) - begin);
  return Error(
      Code::cuda,
      core::text("train: rank ", state.world.rank(), " is out of memory on ", device.str(),
                 ": batches of ", loader.options().batch_size, " in ",
                 precision::name(state.options.precision), " took ",
                 static_cast<double>(memory.peak) / kGibi, " GiB at most, of ",
                 static_cast<double>(comm::device_capacity(device)) / kGibi, " GiB; ", asked),
      "use a smaller --batch-size and keep the step by --global-batch, let --batch auto find the "
      "size, or use --precision bf16");
}

}  // namespace

bool TrainerState::agreed(bool mine) const {
  at::Tensor flag = at::tensor({mine ? 1.0 : 0.0}, at::kDouble);
  world.host_group().all_reduce(flag, comm::ReduceOp::maximum);
  return flag.item<double>() > 0;
}

std::int64_t optimizer_steps(const data::DataLoader& loader, const TrainerOptions& options) {
  const std::int64_t all = options.epochs * windows(loader.steps(), options.accumulate);
  return options.max_steps > 0 ? std::min(all, options.max_steps) : all;
}

Trainer::Trainer(AnyModule model, comm::World& world, TrainerOptions options) {
  require_sane(options);
  take_defaults(options);
  const at::Device device = world.device();
  if (options.channels_last.value_or(device.is_cuda())) models::to_channels_last(*model);
  auto wrapped = wrap(model, world, options.parallel, options.device_ids);
  precision::require_supported(options.precision, device);
  precision::set_product_format(options.precision);
  const bool scales = precision::needs_scaler(options.precision);
  state_ = std::make_unique<TrainerState>(
      TrainerState{std::move(model), world, std::move(options), std::move(wrapped),
                   scales ? std::make_unique<precision::GradScaler>(device) : nullptr});
}

Trainer::~Trainer() = default;

TrainResult Trainer::fit(data::DataLoader& training, optim::Optimizer& optimizer,
                         data::DataLoader* validation) {
  const TrainerOptions& options = state_->options;
  if (std::exchange(state_->fitted, true)) {
    throw Error(Code::invalid_argument, "train: fit() was called before",
                "make a new Trainer for another run");
  }
  if (validation == nullptr && (options.early_stop > 0 || options.keep_best)) {
    throw Error(Code::invalid_argument, "train: early_stop and keep_best need validation data",
                "give fit() a loader to evaluate on");
  }
  TrainingRun::Evaluate evaluate_on_validation;
  if (validation != nullptr) evaluate_on_validation = [&] { return evaluate(*validation); };
  TrainingRun run(*state_, training, optimizer, std::move(evaluate_on_validation));
  try {
    return run.run();
  } catch (const c10::OutOfMemoryError& error) {
    throw out_of_memory(*state_, training, error);
  }
}

NamedValues Trainer::evaluate(data::DataLoader& loader) {
  const TrainerOptions& options = state_->options;
  const bool was_training = state_->model->is_training();
  state_->wrapped->train(false);
  Means means;
  {
    const at::NoGradGuard no_grad;
    for (const data::Batch& batch : loader.epoch(0)) {
      if (batch.rows() == 0) continue;
      at::Tensor output;
      const at::Tensor loss = state_->forward(batch.input, batch.target, &output);
      const auto rows = static_cast<double>(batch.rows());
      means.add("loss", loss.to(at::kDouble) * rows, rows);
      if (!options.metrics) continue;
      for (const MetricSum& part : options.metrics(output, batch.target)) means.add(part);
    }
  }
  NamedValues values = means.over(state_->world.host_group());
  if (was_training) state_->wrapped->train(true);
  return values;
}

}  // namespace yoke::train
