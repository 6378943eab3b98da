#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "step_loop.hpp"
#include "trainer_state.hpp"
#include "weights_copy.hpp"
#include "yoke/checkpoint/manager.hpp"
#include "yoke/optim/exponential_moving_average.hpp"

namespace yoke::train {

// One call of Trainer::fit(): epochs, evaluations between them, and which weights are left at the
// end.
class TrainingRun {
 public:
  // Evaluates the weights that the model holds; empty: there is nothing to evaluate on.
  using Evaluate = std::function<NamedValues()>;

  TrainingRun(TrainerState& state, data::DataLoader& loader, optim::Optimizer& optimizer,
              Evaluate evaluate);

  [[nodiscard]] TrainResult run();

 private:
  void begin();
  void resume();
  [[nodiscard]] bool after_step(bool last_of_epoch);
  [[nodiscard]] bool told_to_stop();
  void save();
  // What another process needs to go on after this step, and how it does.
  [[nodiscard]] checkpoint::RunState state();
  void take_over(const checkpoint::LoadedState& loaded);
  void take_over_facts(const core::Json& facts);
  [[nodiscard]] bool close_epoch(std::int64_t epoch, const StepLoop::Epoch& done);
  [[nodiscard]] bool ended(const char* reason);
  [[nodiscard]] NamedValues evaluate_kept();
  [[nodiscard]] bool asked_to_stop(std::int64_t epoch, const NamedValues& evaluation) const;
  void log_epoch(std::int64_t epoch, double rate, const StepLoop::Epoch& done,
                 const NamedValues& evaluation);
  void finish();

  TrainerState& state_;
  const TrainerOptions& options_;
  data::DataLoader& loader_;
  optim::Optimizer& optimizer_;
  Evaluate evaluate_;

  TrainResult result_;
  std::int64_t first_epoch_ = 0;
  std::int64_t steps_to_agreement_ = 1;
  std::int64_t steps_between_agreements_ = 1;
  std::chrono::steady_clock::time_point agreed_at_ = std::chrono::steady_clock::now();
  std::optional<checkpoint::Manager> checkpoints_;
  Best best_;
  std::optional<optim::ExponentialMovingAverage> ema_;
  std::optional<WeightsCopy> kept_;
  StepLoop loop_;
};

}  // namespace yoke::train
