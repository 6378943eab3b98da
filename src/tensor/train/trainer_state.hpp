#pragma once

#include <cstdint>
#include <memory>

#include "loss_record.hpp"
#include "wrapped_model.hpp"
#include "yoke/comm/world.hpp"
#include "yoke/precision/grad_scaler.hpp"
#include "yoke/train/trainer.hpp"

namespace yoke::train {

struct TrainerState {
  AnyModule model;
  comm::World& world;
  TrainerOptions options;
  std::unique_ptr<WrappedModel> wrapped;
  std::unique_ptr<precision::GradScaler> scaler;  // null: gradients are not scaled
  bool fitted = false;

  // Loggers are rank 0's.
  template <class Call>
  void each_logger(Call call) const {
    if (!world.is_main()) return;
    for (const std::shared_ptr<Logger>& logger : options.loggers) call(*logger);
  }

  [[nodiscard]] bool reached_max_steps(std::int64_t steps) const {
    return options.max_steps > 0 && steps >= options.max_steps;
  }

  [[nodiscard]] at::Tensor forward(const at::Tensor& input, const at::Tensor& target,
                                   at::Tensor* output = nullptr) const {
    const precision::Autocast autocast(options.precision, world.device());
    const at::Tensor scores = wrapped->forward(input);
    if (output != nullptr) *output = scores;
    return options.loss(scores, target);
  }

  // Collective: the sum of all ranks.
  [[nodiscard]] LossRecord::Sum over_ranks(const LossRecord::Sum& mine) const;

  // Collective: whether any rank said so. A rank that stopped alone would leave the others waiting.
  [[nodiscard]] bool agreed(bool mine) const;
};

// Optimizer steps of so many micro-batches.
[[nodiscard]] constexpr std::int64_t windows(std::int64_t micro_batches, std::int64_t accumulate) {
  return (micro_batches + accumulate - 1) / accumulate;
}

}  // namespace yoke::train
