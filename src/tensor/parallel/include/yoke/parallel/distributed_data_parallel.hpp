#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yoke/comm/world.hpp"
#include "yoke/parallel/gradient_engine.hpp"
#include "yoke/parallel/module_access.hpp"
#include "yoke/parallel/tensors.hpp"
#include "yoke/parallel/wrap_guard.hpp"

namespace yoke::parallel {

/// While it lives, forward passes of the wrapper add their gradients locally; the next pass after
/// it averages the sum. As under torch it acts on forward: a pass begun inside stays local although
/// its backward runs outside, and one begun outside averages although its backward runs inside.
class NoSync {
 public:
  explicit NoSync(GradientEngine& engine) : engine_(engine), before_(engine.synchronising()) {
    engine_.set_synchronising(false);
  }
  ~NoSync() { engine_.set_synchronising(before_); }
  NoSync(const NoSync&) = delete;
  NoSync& operator=(const NoSync&) = delete;

 private:
  GradientEngine& engine_;
  bool before_;
};

/// Trains one model over the ranks of `world`: call it in place of the model, and after backward()
/// every rank holds the exact mean of the gradients over all rows of all ranks.
///
///   auto model = yoke::models::resnet50(1000);
///   model->to(world.device());
///   yoke::DistributedDataParallel parallel(model, world);
///   torch::cross_entropy_loss(parallel(input), target).backward();
///
/// Model: a ModuleHolder, a std::shared_ptr to a module with any forward() (any arguments, any
/// return type that
///   visit_tensors() reaches into), or a torch::jit::Module. Parameters that no loss touches need
///   no flag.
/// Ranks: construction and each synchronised backward are collective; rank 0's weights and buffers
/// win at the start. Gradients: `.grad` is a view into a bucket; torch's and our optimizers take
/// it, with zero_grad in place or to none. Buffers: each rank keeps its own (batch-norm statistics)
/// while training; eval(), train() and synchronise_buffers()
///   make them rank 0's on all ranks. No buffer is written during forward.
/// Owns: the model together with the caller, the engine. Borrows world.
/// Threads: one at a time. Errors, streams, cost: see GradientEngine.
template <class Model>
class DistributedDataParallel {
  using Access = ModuleAccess<Model>;

 public:
  DistributedDataParallel(Model model, comm::World& world,
                          DistributedDataParallelOptions options = {})
      : DistributedDataParallel(std::move(model), world.group(), world.host_group(), world.device(),
                                options) {}

  /// For groups of one's own: `host_group` carries settings and is the same as `group` on CPUs.
  DistributedDataParallel(Model model, comm::Group& group, comm::Group& host_group,
                          at::Device device, DistributedDataParallelOptions options = {})
      : guard_(Access::parameters(model), "DistributedDataParallel"),
        model_(std::make_shared<Model>(std::move(model))),
        engine_(std::make_unique<GradientEngine>(
            group, host_group, [model = model_] { return Access::parameters(*model); },
            [model = model_] { return Access::buffers(*model); }, device, options)) {}

  template <class... Args>
  auto operator()(Args&&... args) {
    return forward(std::forward<Args>(args)...);
  }

  /// The model's forward. Its rows, for the mean, are those of the first tensor among the
  /// arguments.
  template <class... Args>
  auto forward(Args&&... args) {
    engine_->before_forward(rows_of(args...));
    auto output = Access::forward(*model_, std::forward<Args>(args)...);
    std::vector<at::Tensor> tensors;
    visit_tensors(output, [&tensors](at::Tensor& tensor) { tensors.push_back(tensor); });
    tensors = engine_->arm(std::move(tensors));
    auto next = tensors.begin();
    visit_tensors(output, [&next](at::Tensor& tensor) { tensor = *next++; });
    return output;
  }

  [[nodiscard]] Model& module() noexcept { return *model_; }
  auto operator->() { return &**model_; }

  [[nodiscard]] std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all;
    for (auto& [name, tensor] : Access::parameters(*model_)) all.push_back(tensor);
    return all;
  }
  [[nodiscard]] NamedTensors named_parameters() const { return Access::parameters(*model_); }
  [[nodiscard]] NamedTensors named_buffers() const { return Access::buffers(*model_); }

  [[nodiscard]] NoSync no_sync() { return NoSync(*engine_); }

  /// For loops of one's own in which this rank has no batch left while others go on.
  void idle_step() { engine_->idle_step(); }

  /// Collective: rank 0's buffers everywhere. Before saving; eval() and train() do it as well.
  void synchronise_buffers() { engine_->synchronise_buffers(); }

  /// Collective: switches the model's mode after making buffers equal.
  void eval() {
    engine_->synchronise_buffers();
    Access::train(*model_, false);
  }
  void train(bool on = true) {
    if (!on) {
      eval();
      return;
    }
    Access::train(*model_, true);
  }

  [[nodiscard]] EngineReport report() const { return engine_->report(); }
  [[nodiscard]] GradientEngine& engine() noexcept { return *engine_; }

 private:
  WrapGuard guard_;
  std::shared_ptr<Model> model_;  // also held by the engine's lists
  std::unique_ptr<GradientEngine> engine_;
};

}  // namespace yoke::parallel

namespace yoke {
using parallel::DistributedDataParallel;
using parallel::DistributedDataParallelOptions;
}  // namespace yoke
