#include "yoke/train/trainer.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Functions.h>

#include "loss_record.hpp"
#include "weights_copy.hpp"
#include "wrapped_model.hpp"
#include "yoke/comm/device.hpp"
#include "yoke/comm/world.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/telemetry.hpp"
#include "yoke/core/text.hpp"
#include "yoke/data/data_loader.hpp"
#include "yoke/launch/start_time.hpp"
#include "yoke/optim/clip_grad_norm.hpp"
#include "yoke/optim/exponential_moving_average.hpp"
#include "yoke/optim/optimizer.hpp"

namespace yoke::train {
namespace {

using core::StepPhase;
using core::text;
using Time = std::chrono::steady_clock;

double seconds_since(Time::time_point start) {
  return std::chrono::duration<double>(Time::now() - start).count();
}

void require_sane(const TrainerOptions& options) {
  const std::array<std::pair<const char*, std::int64_t>, 3> at_least_1{
      {{"epochs", options.epochs},
       {"accumulate", options.accumulate},
       {"log_every", options.log_every}}};
  for (const auto& [name, value] : at_least_1) {
    if (value < 1)
      throw Error(Code::invalid_argument, text("train: ", name, " is ", value), "give 1 or more");
  }
  const std::array<std::pair<const char*, double>, 4> at_least_0{
      {{"max_steps", static_cast<double>(options.max_steps)},
       {"eval_every", static_cast<double>(options.eval_every)},
       {"early_stop", static_cast<double>(options.early_stop)},
       {"clip_norm", options.clip_norm}}};
  for (const auto& [name, value] : at_least_0) {
    if (!(value >= 0))
      throw Error(Code::invalid_argument, text("train: ", name, " is ", value), "give 0 or more");
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

/// Ranks that share a seed get generators that have nothing in common (a step of the SplitMix64
/// generator).
std::uint64_t seed_of_rank(std::uint64_t seed, int rank) {
  std::uint64_t x = seed + 0x9E3779B97F4A7C15ULL * (static_cast<std::uint64_t>(rank) + 1);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

std::uint64_t hash_of(const std::vector<std::int64_t>& samples, std::uint64_t hash) {
  for (const std::int64_t sample : samples) {  // FNV-1a over whole numbers
    hash = (hash ^ static_cast<std::uint64_t>(sample)) * 0x100000001B3ULL;
  }
  return hash;
}

std::int64_t windows(std::int64_t micro_batches, std::int64_t accumulate) {
  return (micro_batches + accumulate - 1) / accumulate;
}

/// Where the time of one step goes, on the host.
class Phases {
 public:
  void begin() {
    spent_ = {};
    last_ = Time::now();
  }
  void end(StepPhase phase) {
    const Time::time_point now = Time::now();
    spent_[static_cast<std::size_t>(phase)] += now - last_;
    last_ = now;
  }
  [[nodiscard]] const std::array<std::chrono::nanoseconds, core::kStepPhases>& spent()
      const noexcept {
    return spent_;
  }

 private:
  Time::time_point last_;
  std::array<std::chrono::nanoseconds, core::kStepPhases> spent_{};
};

}  // namespace

std::int64_t optimizer_steps(const data::DataLoader& loader, const TrainerOptions& options) {
  const std::int64_t all = options.epochs * windows(loader.steps(), options.accumulate);
  return options.max_steps > 0 ? std::min(all, options.max_steps) : all;
}

struct Trainer::State {
  AnyModule model;
  comm::World& world;
  TrainerOptions options;
  std::unique_ptr<WrappedModel> wrapped;
  bool fitted = false;
};

/// One call of fit().
class Trainer::Run {
 public:
  Run(Trainer& trainer, data::DataLoader& loader, optim::Optimizer& optimizer,
      data::DataLoader* validation)
      : trainer_(trainer),
        state_(*trainer.state_),
        options_(state_.options),
        loader_(loader),
        optimizer_(optimizer),
        validation_(validation),
        losses_(state_.world.rank()),
        best_(options_.monitor),
        epoch_steps_(windows(loader.steps(), options_.accumulate)) {
    if (options_.ema > 0) ema_.emplace(*state_.model, optim::EmaOptions{.decay = options_.ema});
    if (options_.keep_best) kept_.emplace(*state_.model);
  }

  TrainResult run() {
    begin();
    bool going = true;
    for (std::int64_t epoch = 0; epoch < options_.epochs && going; ++epoch) {
      train_epoch(epoch);
      going = !close_epoch(epoch);
    }
    finish();
    return result_;
  }

 private:
  void begin() {
    at::manual_seed(seed_of_rank(options_.seed, state_.world.rank()));
    state_.wrapped->train(true);
    RunFacts facts{.device = state_.world.device().str(),
                   .ranks = state_.world.size(),
                   .epochs = options_.epochs,
                   .steps_per_epoch = epoch_steps_,
                   .batch_size = loader_.options().batch_size,
                   .accumulate = options_.accumulate};
    for (const at::Tensor& parameter : state_.model->parameters())
      facts.parameters += parameter.numel();
    each_logger([&](Logger& logger) { logger.begin(facts); });
  }

  void train_epoch(std::int64_t epoch) {
    data::DataLoader::Epoch batches = loader_.epoch(epoch);
    epoch_ = epoch;
    ++result_.epochs;
    epoch_start_ = interval_start_ = Time::now();
    const std::int64_t micro_batches = batches.steps();
    for (std::int64_t done = 0; done < micro_batches && !reached_max_steps();
         done += options_.accumulate) {
      step(batches, std::min(options_.accumulate, micro_batches - done));
      report_step(done / options_.accumulate + 1);
    }
    losses_.settle();  // on a card this waits for the epoch's last step
    result_.seconds += seconds_since(epoch_start_);
  }

  void step(data::DataLoader::Epoch& batches, std::int64_t micro_batches) {
    phases_.begin();
    step_rows_ = 0;
    step_hash_ = 0xCBF29CE484222325ULL;
    optimizer_.zero_grad();
    for (std::int64_t index = 0; index < micro_batches; ++index) {
      state_.wrapped->begin_micro_batch(index, micro_batches);
      const data::Batch& batch = *batches.next();
      phases_.end(StepPhase::input);
      micro_batch(batch);
    }
    state_.wrapped->finish_window();
    if (options_.clip_norm > 0) optim::clip_grad_norm_(optimizer_.parameters(), options_.clip_norm);
    if (options_.schedule) optimizer_.set_lr_factor(options_.schedule->factor(result_.steps));
    optimizer_.step();
    if (ema_) ema_->update();
    phases_.end(StepPhase::optimizer);
    if (++result_.steps == 1) first_step_done();
  }

  void micro_batch(const data::Batch& batch) {
    step_rows_ += batch.rows();
    step_hash_ = hash_of(batch.indices, step_hash_);
    result_.samples += batch.global_rows;
    if (batch.rows() == 0) {
      state_.wrapped->idle_micro_batch();
      phases_.end(StepPhase::backward);
      return;
    }
    at::Tensor loss = options_.loss(state_.wrapped->forward(batch.input), batch.target);
    losses_.add(loss, batch, result_.steps + 1);
    if (const double factor = state_.wrapped->loss_factor(batch.rows()); factor != 1.0)
      loss = loss * factor;
    phases_.end(StepPhase::forward);
    loss.backward();
    phases_.end(StepPhase::backward);
  }

  void first_step_done() {
    comm::synchronize(state_.world.device());
    const auto started =
        options_.started ? *options_.started : launch::user_start_time(core::environment());
    const std::chrono::duration<double> passed = core::SystemClock::instance().wall() - started;
    result_.seconds_to_first_step = passed.count();
  }

  void report_step(std::int64_t epoch_step) {
    state_.world.telemetry().step_ended({.epoch = static_cast<std::uint64_t>(epoch_),
                                         .step = static_cast<std::uint64_t>(result_.steps),
                                         .samples = static_cast<std::uint64_t>(step_rows_),
                                         .sample_hash = step_hash_,
                                         .phases = phases_.spent()});
    if (result_.steps % options_.log_every == 0) log_steps();
    if (!options_.on_step) return;
    options_.on_step({.epoch = epoch_,
                      .epoch_step = epoch_step,
                      .epoch_steps = epoch_steps_,
                      .step = result_.steps,
                      .rows = step_rows_,
                      .lr = optimizer_.lr()});
  }

  void log_steps() {
    losses_.settle();
    const LossRecord::Sum sum = over_ranks(losses_.take_interval());
    const double seconds = seconds_since(std::exchange(interval_start_, Time::now()));
    const double loss = sum.loss / sum.rows;
    state_.world.telemetry().loss(loss);
    state_.world.telemetry().queue_depth(loader_.report().ready);
    const Scalars record{.of = Scalars::Of::steps,
                         .epoch = epoch_,
                         .step = result_.steps,
                         .values = {{"train/loss", loss},
                                    {"train/lr", optimizer_.lr()},
                                    {"train/samples_per_second", sum.rows / seconds}}};
    each_logger([&](Logger& logger) { logger.scalars(record); });
  }

  /// True: stop.
  bool close_epoch(std::int64_t epoch) {
    const double seconds = seconds_since(epoch_start_);
    const LossRecord::Sum sum = over_ranks(losses_.take_epoch());
    result_.loss = sum.loss / sum.rows;
    const bool is_last = epoch + 1 == options_.epochs || reached_max_steps();
    const bool is_due = options_.eval_every > 0 && (epoch + 1) % options_.eval_every == 0;
    NamedValues evaluation;
    if (validation_ != nullptr && (is_last || is_due)) evaluation = evaluate_kept();
    log_epoch(sum.rows / seconds, seconds, evaluation);
    const bool patience_ended =
        options_.early_stop > 0 && best_.evaluations_since() >= options_.early_stop;
    const bool asked = asked_to_stop(evaluation);
    if (reached_max_steps()) return ended("max steps");
    if (agreed(patience_ended)) return ended("early stop");
    return agreed(asked) && ended("stopped by on_epoch");
  }

  bool ended(const char* reason) {
    result_.reason = reason;
    return true;
  }

  void log_epoch(double rate, double seconds, const NamedValues& evaluation) {
    Scalars record{.of = Scalars::Of::epoch,
                   .epoch = epoch_,
                   .step = result_.steps,
                   .values = {{"train/loss", result_.loss},
                              {"train/lr", optimizer_.lr()},
                              {"train/samples_per_second", rate},
                              {"train/seconds", seconds}}};
    for (const auto& [name, value] : evaluation) record.values.emplace_back("eval/" + name, value);
    each_logger([&](Logger& logger) { logger.scalars(record); });
  }

  bool asked_to_stop(const NamedValues& evaluation) const {
    return options_.on_epoch && options_.on_epoch({.epoch = epoch_,
                                                   .step = result_.steps,
                                                   .loss = result_.loss,
                                                   .evaluation = evaluation});
  }

  /// Evaluates the weights that would be kept now: the averaged ones where there is an average.
  NamedValues evaluate_kept() {
    std::optional<optim::ExponentialMovingAverage::SwappedIn> averaged;
    if (ema_) averaged.emplace(*ema_);
    NamedValues values = trainer_.evaluate(*validation_);
    const bool watched = options_.keep_best || options_.early_stop > 0 || options_.on_best;
    const bool better = watched && best_.update(values);
    if (better || !options_.keep_best) result_.evaluation = values;
    if (better) {
      if (kept_) kept_->take();
      if (options_.on_best) options_.on_best();
    }
    return values;
  }

  void finish() {
    if (kept_ && best_.value()) {
      kept_->restore();
    } else if (ema_) {
      ema_->swap();
    }
    result_.samples_per_second = static_cast<double>(result_.samples) / result_.seconds;
    RunEnd end{.reason = result_.reason, .epochs = result_.epochs, .steps = result_.steps};
    end.values = {{"train/loss", result_.loss},
                  {"train/samples_per_second", result_.samples_per_second}};
    for (const auto& [name, value] : result_.evaluation)
      end.values.emplace_back("eval/" + name, value);
    each_logger([&](Logger& logger) { logger.end(end); });
    state_.wrapped->train(false);  // equal buffers on all ranks, for whoever saves the model
  }

  [[nodiscard]] bool reached_max_steps() const {
    return options_.max_steps > 0 && result_.steps >= options_.max_steps;
  }

  [[nodiscard]] LossRecord::Sum over_ranks(const LossRecord::Sum& mine) const {
    at::Tensor sums = at::tensor({mine.loss, mine.rows}, at::kDouble);
    state_.world.host_group().all_reduce(sums);
    return {sums[0].item<double>(), sums[1].item<double>()};
  }

  /// Whether any rank said so: a rank that stopped alone would leave the others waiting.
  [[nodiscard]] bool agreed(bool mine) const {
    at::Tensor flag = at::tensor({mine ? 1.0 : 0.0}, at::kDouble);
    state_.world.host_group().all_reduce(flag, comm::ReduceOp::maximum);
    return flag.item<double>() > 0;
  }

  template <class Call>
  void each_logger(Call call) const {
    if (!state_.world.is_main()) return;
    for (const std::shared_ptr<Logger>& logger : options_.loggers) call(*logger);
  }

  Trainer& trainer_;
  State& state_;
  const TrainerOptions& options_;
  data::DataLoader& loader_;
  optim::Optimizer& optimizer_;
  data::DataLoader* validation_;

  LossRecord losses_;
  Best best_;
  std::optional<optim::ExponentialMovingAverage> ema_;
  std::optional<WeightsCopy> kept_;
  Phases phases_;
  TrainResult result_;

  std::int64_t epoch_steps_;
  std::int64_t epoch_ = 0;
  std::int64_t step_rows_ = 0;
  std::uint64_t step_hash_ = 0;
  Time::time_point epoch_start_;
  Time::time_point interval_start_;
};

Trainer::Trainer(AnyModule model, comm::World& world, TrainerOptions options) {
  require_sane(options);
  take_defaults(options);
  auto wrapped = wrap(model, world, options.parallel, options.device_ids);
  state_ = std::make_unique<State>(
      State{std::move(model), world, std::move(options), std::move(wrapped)});
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
  return Run(*this, training, optimizer, validation).run();
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
      const at::Tensor output = state_->wrapped->forward(batch.input);
      const auto rows = static_cast<double>(batch.rows());
      means.add("loss", options.loss(output, batch.target).to(at::kDouble) * rows, rows);
      if (!options.metrics) continue;
      for (const MetricSum& part : options.metrics(output, batch.target)) means.add(part);
    }
  }
  NamedValues values = means.over(state_->world.host_group());
  if (was_training) state_->wrapped->train(true);
  return values;
}

}  // namespace yoke::train
