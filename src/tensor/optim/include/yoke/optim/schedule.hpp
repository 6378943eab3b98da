#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::optim {

enum class Shape {
  constant,  ///< 1
  linear,    ///< straight from 1 to end_factor at total_steps
  cosine,    ///< half a cosine from 1 to end_factor at total_steps
  step,      ///< times gamma at every step_size steps
};

/// The shapes' names as `--schedule` takes them: constant, linear, cosine, step.
[[nodiscard]] std::vector<std::string> shape_names();

/// Errors: not_found for an unknown name, with the nearest one.
[[nodiscard]] Shape shape_from_name(std::string_view name);

/// A schedule as plain numbers, to keep with a checkpoint: the run that goes on compares it with
/// its own.
struct ScheduleOptions {
  Shape shape = Shape::constant;
  std::int64_t total_steps = 0;   ///< optimizer steps of the whole run, warm-up included
  double end_factor = 0;          ///< of linear and cosine, from total_steps on
  std::int64_t step_size = 0;     ///< of step, counted from the start of the run
  double gamma = 0.1;             ///< of step
  std::int64_t warmup_steps = 0;  ///< straight from warmup_factor to 1 over so many steps first
  double warmup_factor = 0.01;    ///< at step 0

  bool operator==(const ScheduleOptions&) const = default;
};

/// What the learning rate is multiplied with, as a function of the optimizer step alone: it is the
/// same for every number of ranks and micro-batches, and needs no state to go on after a restart.
///
///   const Schedule schedule({.shape = Shape::cosine, .total_steps = steps, .warmup_steps = 500});
///   optimizer.set_lr_factor(schedule.factor(k));  // before the k-th step, k from 0
///
/// Errors: invalid_argument for lengths or factors that do not fit together.
class Schedule {
 public:
  explicit Schedule(const ScheduleOptions& options);

  /// In [0, 1] for factors in [0, 1]. Requires: step >= 0. After total_steps it stays at
  /// end_factor.
  [[nodiscard]] double factor(std::int64_t step) const;

  [[nodiscard]] const ScheduleOptions& options() const noexcept { return options_; }

 private:
  ScheduleOptions options_;
};

enum class LrScaling {
  none,         ///< as given
  linear,       ///< times the number of ranks, for a global batch that many times as large
  square_root,  ///< times its root: for Adam, whose steps grow with the gradient's noise
};

/// The names as `--scale-lr` takes them: none, linear. Errors of the latter: not_found.
[[nodiscard]] std::vector<std::string> lr_scaling_names();
[[nodiscard]] LrScaling lr_scaling_from_name(std::string_view name);

/// The learning rate of a run over `world_size` ranks. Errors: invalid_argument for fewer than 1.
[[nodiscard]] double scaled_lr(double lr, std::int64_t world_size, LrScaling rule);

}  // namespace yoke::optim
