#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "captured_function.hpp"
#include "loss_record.hpp"
#include "step_profile.hpp"
#include "trainer_state.hpp"
#include "yoke/core/telemetry.hpp"
#include "yoke/data/data_loader.hpp"

namespace yoke::optim {
class ExponentialMovingAverage;
}

namespace yoke::train {

// Where the time of one step goes, on the host.
class StepClock {
 public:
  using Time = std::chrono::steady_clock;

  void begin() {
    spent_ = {};
    last_ = Time::now();
  }
  void end(core::StepPhase phase) {
    const Time::time_point now = Time::now();
    spent_[static_cast<std::size_t>(phase)] += now - last_;
    last_ = now;
  }
  [[nodiscard]] const auto& spent() const noexcept { return spent_; }

 private:
  Time::time_point last_;
  std::array<std::chrono::nanoseconds, core::kStepPhases> spent_{};
};

// The optimizer steps of one epoch after the other.
//
// Ranks: train_epoch() is collective. Borrows all that it is given; adds to `result` what was done.
class StepLoop {
 public:
  struct Epoch {
    LossRecord::Sum losses;  // of this rank
    double seconds = 0;
    double data_wait = 0;  // part of this process's seconds in which steps had no batch
  };

  // Called after each optimizer step of an epoch, with whether it was the epoch's last. True: the
  // epoch ends here, on all ranks.
  using AfterStep = std::function<bool(bool last_of_epoch)>;

  StepLoop(TrainerState& state, data::DataLoader& loader, optim::Optimizer& optimizer,
           optim::ExponentialMovingAverage* ema, TrainResult& result, AfterStep after_step);

  // All of the epoch, or what the loader has left of it.
  [[nodiscard]] Epoch train_epoch(std::int64_t epoch);

  [[nodiscard]] std::int64_t steps_per_epoch() const noexcept { return epoch_steps_; }

  [[nodiscard]] std::int64_t epoch() const noexcept { return epoch_; }  // the one under way

  // Where this rank stands within an epoch.
  struct Progress {
    std::int64_t epoch = 0;
    double seconds = 0;  // spent in the epoch
    LossRecord::Sums losses;
  };
  [[nodiscard]] Progress progress();
  // The next train_epoch() goes on from there.
  void restore(const Progress& progress);

 private:
  void step(data::DataLoader::Epoch& batches, std::int64_t micro_batches);
  void note(const data::Batch& batch);
  void micro_batch(const data::Batch& batch);
  void backward(const at::Tensor& loss) const;
  void optimizer_step();
  [[nodiscard]] bool fits_capture(const data::Batch& batch, std::int64_t micro_batches) const;
  void captured_step(const data::Batch& batch);
  void step_done();
  void first_step_done();
  void report_step(std::int64_t epoch_step);
  void log_steps();

  TrainerState& state_;
  const TrainerOptions& options_;
  data::DataLoader& loader_;
  optim::Optimizer& optimizer_;
  optim::ExponentialMovingAverage* ema_;  // null: none
  TrainResult& result_;
  AfterStep after_step_;

  std::unique_ptr<CapturedFunction> captured_;  // a whole step on input and target; null: eager
  LossRecord losses_;
  StepProfile profile_;
  StepClock clock_;
  std::int64_t epoch_steps_;
  std::int64_t epoch_ = 0;
  StepClock::Time::time_point epoch_start_;
  double seconds_before_ = 0;  // of this epoch, in an earlier process
  bool any_step_done_ = false;
  std::int64_t step_rows_ = 0;
  std::uint64_t step_hash_ = 0;
  StepClock::Time::time_point interval_start_;
};

}  // namespace yoke::train
