#include "step_loop.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "yoke/comm/device.hpp"
#include "yoke/core/clock.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/launch/start_time.hpp"
#include "yoke/optim/clip_grad_norm.hpp"
#include "yoke/optim/exponential_moving_average.hpp"
#include "yoke/optim/optimizer.hpp"

namespace yoke::train {
namespace {

using core::StepPhase;

constexpr std::uint64_t kHashStart = 0xCBF29CE484222325ULL;
constexpr std::uint64_t kHashFactor = 0x100000001B3ULL;

// FNV-1a over whole numbers.
std::uint64_t hash_of(const std::vector<std::int64_t>& samples, std::uint64_t hash) {
  for (const std::int64_t sample : samples) {
    hash = (hash ^ static_cast<std::uint64_t>(sample)) * kHashFactor;
  }
  return hash;
}

double seconds_since(StepClock::Time::time_point start) {
  return std::chrono::duration<double>(StepClock::Time::now() - start).count();
}

}  // namespace

StepLoop::StepLoop(TrainerState& state, data::DataLoader& loader, optim::Optimizer& optimizer,
                   optim::ExponentialMovingAverage* ema, TrainResult& result, AfterStep after_step)
    : state_(state),
      options_(state.options),
      loader_(loader),
      optimizer_(optimizer),
      ema_(ema),
      result_(result),
      after_step_(std::move(after_step)),
      losses_(state.world.rank()),
      profile_(options_.profile, state.world),
      epoch_steps_(windows(loader.steps(), options_.accumulate)) {
  const bool on_card = state_.world.device().is_cuda() && options_.parallel != Parallel::dp;
  if (!options_.capture || !on_card || options_.accumulate > 1) return;
  optimizer_.keep_lr_on_device();
  captured_ = std::make_unique<CapturedFunction>(
      [this](const CapturedFunction::Tensors& batch) -> CapturedFunction::Tensors {
        optimizer_.zero_grad();
        state_.wrapped->begin_micro_batch(0, 1);
        const at::Tensor loss = state_.forward(batch[0], batch[1]);
        const double factor = state_.wrapped->loss_factor(batch[0].size(0));
        backward(factor == 1.0 ? loss : loss * factor);
        state_.wrapped->finish_window();
        optimizer_step();
        return {loss.detach()};
      },
      state_.world);
}

StepLoop::Epoch StepLoop::train_epoch(std::int64_t epoch) {
  data::DataLoader::Epoch batches = loader_.epoch(epoch);
  epoch_ = epoch;
  ++result_.epochs;
  epoch_start_ = interval_start_ = StepClock::Time::now();
  const auto waited_before = loader_.report().waited;
  const std::int64_t micro_batches = batches.steps();
  const std::int64_t before = epoch_steps_ - windows(micro_batches, options_.accumulate);
  for (std::int64_t done = 0; done < micro_batches && !state_.reached_max_steps(result_.steps);
       done += options_.accumulate) {
    profile_.before_step(result_.steps);
    step(batches, std::min(options_.accumulate, micro_batches - done));
    report_step(before + done / options_.accumulate + 1);
    profile_.after_step(result_.steps);
    if (after_step_(done + options_.accumulate >= micro_batches)) break;
  }
  losses_.settle();  // on a card this waits for the epoch's last step
  const double seconds_here = seconds_since(epoch_start_);
  const double seconds = seconds_here + std::exchange(seconds_before_, 0.0);
  const std::chrono::duration<double> waited = loader_.report().waited - waited_before;
  result_.seconds += seconds;
  result_.data_wait += waited.count();
  return {losses_.take_epoch(), seconds, waited.count() / seconds_here};
}

StepLoop::Progress StepLoop::progress() {
  losses_.settle();
  return {epoch_, seconds_since(epoch_start_) + seconds_before_, losses_.sums()};
}

void StepLoop::restore(const Progress& progress) {
  seconds_before_ = progress.seconds;
  losses_.restore(progress.losses);
}

void StepLoop::step(data::DataLoader::Epoch& batches, std::int64_t micro_batches) {
  clock_.begin();
  step_rows_ = 0;
  step_hash_ = kHashStart;
  if (options_.schedule) {
    // A step that the scaler skipped does not count: that is asked of the device.
    const std::int64_t taken = state_.scaler ? state_.scaler->steps_taken() : result_.steps;
    optimizer_.set_lr_factor(options_.schedule->factor(taken));
  }
  for (std::int64_t index = 0; index < micro_batches; ++index) {
    const data::Batch& batch = *batches.next();
    clock_.end(StepPhase::input);
    note(batch);
    if (fits_capture(batch, micro_batches)) return captured_step(batch);
    if (index == 0) optimizer_.zero_grad();
    state_.wrapped->begin_micro_batch(index, micro_batches);
    micro_batch(batch);
  }
  state_.wrapped->finish_window();
  optimizer_step();
  step_done();
}

// The same answer on every rank: a captured step and an eager one do not meet.
bool StepLoop::fits_capture(const data::Batch& batch, std::int64_t micro_batches) const {
  const std::int64_t full = loader_.options().batch_size * state_.world.size();
  return captured_ && micro_batches == 1 && batch.global_rows == full;
}

void StepLoop::captured_step(const data::Batch& batch) {
  losses_.add((*captured_)({batch.input, batch.target})[0], batch, result_.steps + 1);
  clock_.end(StepPhase::backward);
  step_done();
}

void StepLoop::step_done() {
  if (ema_ != nullptr) ema_->update();
  clock_.end(StepPhase::optimizer);
  ++result_.steps;
  if (!std::exchange(any_step_done_, true)) first_step_done();
}

void StepLoop::backward(const at::Tensor& loss) const {
  (state_.scaler ? state_.scaler->scale(loss) : loss).backward();
}

void StepLoop::optimizer_step() {
  const bool clips = options_.clip_norm > 0;
  if (state_.scaler && clips) state_.scaler->unscale(optimizer_);
  if (clips) optim::clip_grad_norm_(optimizer_.parameters(), options_.clip_norm);
  if (!state_.scaler) return optimizer_.step();
  state_.scaler->step(optimizer_);
  state_.scaler->update();
}

void StepLoop::note(const data::Batch& batch) {
  step_rows_ += batch.rows();
  step_hash_ = hash_of(batch.indices, step_hash_);
  result_.samples += batch.global_rows;
}

void StepLoop::micro_batch(const data::Batch& batch) {
  if (batch.rows() == 0) {
    state_.wrapped->idle_micro_batch(batch.input);
    clock_.end(StepPhase::backward);
    return;
  }
  at::Tensor loss = state_.forward(batch.input, batch.target);
  losses_.add(loss, batch, result_.steps + 1);
  const double factor = state_.wrapped->loss_factor(batch.rows());
  if (factor != 1.0) loss = loss * factor;
  clock_.end(StepPhase::forward);
  backward(loss);
  clock_.end(StepPhase::backward);
}

void StepLoop::first_step_done() {
  comm::synchronize(state_.world.device());
  const auto started =
      options_.started ? *options_.started : launch::user_start_time(core::environment());
  const std::chrono::duration<double> passed = core::SystemClock::instance().wall() - started;
  result_.seconds_to_first_step = passed.count();
}

void StepLoop::report_step(std::int64_t epoch_step) {
  state_.world.telemetry().step_ended({.epoch = static_cast<std::uint64_t>(epoch_),
                                       .step = static_cast<std::uint64_t>(result_.steps),
                                       .samples = static_cast<std::uint64_t>(step_rows_),
                                       .sample_hash = step_hash_,
                                       .phases = clock_.spent()});
  if (result_.steps % options_.log_every == 0) log_steps();
  if (!options_.on_step) return;
  options_.on_step({.epoch = epoch_,
                    .epoch_step = epoch_step,
                    .epoch_steps = epoch_steps_,
                    .step = result_.steps,
                    .rows = step_rows_,
                    .lr = optimizer_.lr()});
}

void StepLoop::log_steps() {
  losses_.settle();
  if (state_.scaler) state_.scaler->check(optimizer_);
  const LossRecord::Sum sum = state_.over_ranks(losses_.take_interval());
  const double seconds = seconds_since(std::exchange(interval_start_, StepClock::Time::now()));
  const double loss = sum.loss / sum.rows;
  state_.world.telemetry().loss(loss);
  state_.world.telemetry().queue_depth(loader_.report().ready);
  const Scalars record{.of = Scalars::Of::steps,
                       .epoch = epoch_,
                       .step = result_.steps,
                       .values = {{"train/loss", loss},
                                  {"train/lr", optimizer_.lr()},
                                  {"train/samples_per_second", sum.rows / seconds}}};
  state_.each_logger([&](Logger& logger) { logger.scalars(record); });
}

}  // namespace yoke::train
