#include "yoke/train/step.hpp"

#include <optional>
#include <utility>

#include "captured_function.hpp"
#include "yoke/comm/world.hpp"
#include "yoke/optim/clip_grad_norm.hpp"
#include "yoke/optim/optimizer.hpp"
#include "yoke/precision/grad_scaler.hpp"

namespace yoke::train {

struct Step::State {
  Loss loss_of;
  optim::Optimizer& optimizer;
  at::Device device;
  StepOptions options;
  std::optional<precision::GradScaler> scaler;
  std::unique_ptr<CapturedFunction> captured;  // null: eager

  Tensors run(const Tensors& batch) {
    optimizer.zero_grad();
    at::Tensor loss;
    {
      const precision::Autocast autocast(options.precision, device);
      loss = loss_of(batch);
    }
    (scaler ? scaler->scale(loss) : loss).backward();
    if (scaler && options.clip_norm > 0) scaler->unscale(optimizer);
    if (options.clip_norm > 0) optim::clip_grad_norm_(optimizer.parameters(), options.clip_norm);
    if (scaler) {
      scaler->step(optimizer);
      scaler->update();
    } else {
      optimizer.step();
    }
    return {loss.detach()};
  }
};

Step::Step(Loss loss, optim::Optimizer& optimizer, comm::World& world, StepOptions options) {
  precision::require_supported(options.precision, world.device());
  precision::set_product_format(options.precision);
  state_.reset(new State{.loss_of = std::move(loss),
                         .optimizer = optimizer,
                         .device = world.device(),
                         .options = options,
                         .scaler = std::nullopt,
                         .captured = nullptr});
  if (precision::needs_scaler(options.precision)) state_->scaler.emplace(world.device());
  if (!options.capture || !world.device().is_cuda()) return;
  optimizer.keep_lr_on_device();
  state_->captured = std::make_unique<CapturedFunction>(
      [state = state_.get()](const Tensors& batch) { return state->run(batch); }, world,
      CaptureOptions{.warmup = options.warmup});
}

Step::~Step() = default;

at::Tensor Step::operator()(const Tensors& batch) {
  return (state_->captured ? (*state_->captured)(batch) : state_->run(batch))[0];
}

std::size_t Step::replays() const noexcept {
  return state_->captured ? state_->captured->replays() : 0;
}

const std::string& Step::obstacle() const noexcept {
  static const std::string none;
  return state_->captured ? state_->captured->obstacle() : none;
}

}  // namespace yoke::train
