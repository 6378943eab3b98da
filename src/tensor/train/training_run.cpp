#include "training_run.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Functions.h>

#include "yoke/comm/group.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"
#include "yoke/optim/optimizer.hpp"

namespace yoke::train {
namespace {

/// Ranks that share a seed get generators that have nothing in common (a step of the SplitMix64
/// generator).
std::uint64_t seed_of_rank(std::uint64_t seed, int rank) {
  std::uint64_t x = seed + 0x9E3779B97F4A7C15ULL * (static_cast<std::uint64_t>(rank) + 1);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

/// Not an error: in the first steps batch norm's running statistics can be that far off.
void warn_of_nan(const NamedValues& evaluation) {
  for (const auto& [name, value] : evaluation) {
    if (std::isfinite(value)) continue;
    core::say(core::Level::warning, core::text("evaluation: ", name, " is ", value,
                                               ": a value that does not count as a better one"));
  }
}

std::optional<optim::ExponentialMovingAverage> average_of(const TrainerState& state) {
  if (state.options.ema <= 0) return std::nullopt;
  return optim::ExponentialMovingAverage(*state.model, {.decay = state.options.ema});
}

}  // namespace

TrainingRun::TrainingRun(TrainerState& state, data::DataLoader& loader, optim::Optimizer& optimizer,
                         Evaluate evaluate)
    : state_(state),
      options_(state.options),
      loader_(loader),
      optimizer_(optimizer),
      evaluate_(std::move(evaluate)),
      best_(options_.monitor),
      ema_(average_of(state)),
      loop_(state, loader, optimizer, ema_ ? &*ema_ : nullptr, result_,
            [this](bool last_of_epoch) { return after_step(last_of_epoch); }) {
  if (options_.keep_best) kept_.emplace(*state.model);
  if (!options_.checkpoints) return;
  checkpoints_.emplace(state.world.host_group(),
                       checkpoint::ManagerOptions{.folder = options_.checkpoints->folder,
                                                  .keep = options_.checkpoints->keep,
                                                  .keep_every = options_.checkpoints->keep_every});
}

TrainResult TrainingRun::run() {
  begin();
  bool going = true;
  for (std::int64_t epoch = first_epoch_; epoch < options_.epochs && going; ++epoch) {
    const StepLoop::Epoch done = loop_.train_epoch(epoch);
    if (result_.stopped_by != 0) break;
    going = !close_epoch(epoch, done);
  }
  finish();
  return result_;
}

void TrainingRun::begin() {
  at::manual_seed(seed_of_rank(options_.seed, state_.world.rank()));
  state_.wrapped->train(true);
  if (checkpoints_ && options_.checkpoints->resume) resume();
  RunFacts facts{.device = state_.world.device().str(),
                 .ranks = state_.world.size(),
                 .epochs = options_.epochs,
                 .steps_per_epoch = loop_.steps_per_epoch(),
                 .batch_size = loader_.options().batch_size,
                 .accumulate = options_.accumulate,
                 .resumed_at = result_.resumed_at};
  for (const at::Tensor& parameter : state_.model->parameters()) {
    facts.parameters += parameter.numel();
  }
  state_.each_logger([&](Logger& logger) { logger.begin(facts); });
}

bool TrainingRun::after_step(bool last_of_epoch) {
  const bool is_last = last_of_epoch && loop_.epoch() + 1 == options_.epochs;
  const bool stop = !is_last && told_to_stop();  // what is done need not be stopped
  if (!checkpoints_) return stop;
  const std::int64_t every = options_.checkpoints->every;
  const bool is_due = every > 0 ? result_.steps % every == 0 : every == 0 && last_of_epoch;
  if (stop || is_due) save();
  return stop;
}

// Ranks are told at different moments, or one of them alone: they ask each other, all after the
// same steps, a few times a second.
bool TrainingRun::told_to_stop() {
  if (!options_.stop_signal || --steps_to_agreement_ > 0) return false;
  const auto now = std::chrono::steady_clock::now();
  const std::int64_t steps = std::exchange(steps_between_agreements_, 1);
  const std::chrono::duration<double> passed = now - std::exchange(agreed_at_, now);
  at::Tensor said = at::tensor(
      {static_cast<double>(options_.stop_signal()), passed.count() / static_cast<double>(steps)},
      at::kDouble);
  state_.world.host_group().all_reduce(said, comm::ReduceOp::maximum);
  const double seconds_a_step = std::max(said[1].item<double>(), 1e-6);
  steps_between_agreements_ = steps_to_agreement_ = std::clamp<std::int64_t>(
      std::llround(options_.stop_agreement_seconds / seconds_a_step), 1, 10'000);
  result_.stopped_by = static_cast<int>(said[0].item<double>());
  if (result_.stopped_by != 0)
    result_.reason = "stopped by " + core::signal_name(result_.stopped_by);
  return result_.stopped_by != 0;
}

// True: stop.
bool TrainingRun::close_epoch(std::int64_t epoch, const StepLoop::Epoch& done) {
  const LossRecord::Sum sum = state_.over_ranks(done.losses);
  result_.loss = sum.loss / sum.rows;
  const bool out_of_steps = state_.reached_max_steps(result_.steps);
  const bool is_last = epoch + 1 == options_.epochs || out_of_steps;
  const bool is_due = options_.eval_every > 0 && (epoch + 1) % options_.eval_every == 0;
  NamedValues evaluation;
  if (evaluate_ && (is_last || is_due)) evaluation = evaluate_kept();
  log_epoch(epoch, sum.rows / done.seconds, done, evaluation);
  const bool patience_ended =
      options_.early_stop > 0 && best_.evaluations_since() >= options_.early_stop;
  const bool asked = asked_to_stop(epoch, evaluation);
  if (out_of_steps) return ended("max steps");
  if (state_.agreed(patience_ended)) return ended("early stop");
  return state_.agreed(asked) && ended("stopped by on_epoch");
}

bool TrainingRun::ended(const char* reason) {
  result_.reason = reason;
  return true;
}

// Of the weights that would be kept now: the averaged ones where there is an average.
NamedValues TrainingRun::evaluate_kept() {
  std::optional<optim::ExponentialMovingAverage::SwappedIn> averaged;
  if (ema_) averaged.emplace(*ema_);
  NamedValues values = evaluate_();
  warn_of_nan(values);
  const bool watched = options_.keep_best || options_.early_stop > 0 || options_.on_best;
  const bool better = watched && best_.update(values);
  if (better || !options_.keep_best) result_.evaluation = values;
  if (better) {
    if (kept_) kept_->take();
    if (options_.on_best) options_.on_best();
  }
  return values;
}

bool TrainingRun::asked_to_stop(std::int64_t epoch, const NamedValues& evaluation) const {
  return options_.on_epoch && options_.on_epoch({.epoch = epoch,
                                                 .step = result_.steps,
                                                 .loss = result_.loss,
                                                 .evaluation = evaluation});
}

void TrainingRun::log_epoch(std::int64_t epoch, double rate, const StepLoop::Epoch& done,
                            const NamedValues& evaluation) {
  Scalars record{.of = Scalars::Of::epoch,
                 .epoch = epoch,
                 .step = result_.steps,
                 .values = {{"train/loss", result_.loss},
                            {"train/lr", optimizer_.lr()},
                            {"train/samples_per_second", rate},
                            {"train/seconds", done.seconds},
                            {"train/data_wait", done.data_wait}}};
  for (const auto& [name, value] : evaluation) record.values.emplace_back("eval/" + name, value);
  state_.each_logger([&](Logger& logger) { logger.scalars(record); });
}

void TrainingRun::finish() {
  if (kept_ && best_.value()) {
    kept_->restore();
  } else if (ema_) {
    ema_->swap();
  }
  result_.samples_per_second = static_cast<double>(result_.samples) / result_.seconds;
  RunEnd end{.reason = result_.reason,
             .epochs = result_.epochs,
             .steps = result_.steps,
             .values = {{"train/loss", result_.loss},
                        {"train/samples_per_second", result_.samples_per_second}}};
  for (const auto& [name, value] : result_.evaluation) {
    end.values.emplace_back("eval/" + name, value);
  }
  state_.each_logger([&](Logger& logger) { logger.end(end); });
  state_.wrapped->train(false);  // equal buffers on all ranks, for whoever saves the model
}

}  // namespace yoke::train
