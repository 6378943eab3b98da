#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yoke/precision/autocast.hpp"

namespace yoke::comm {
class World;
}
namespace yoke::optim {
class Optimizer;
}

namespace yoke::train {

struct StepOptions {
  precision::Precision precision = precision::Precision::fp32;
  bool capture = true;   ///< on a card: replay the step from a CUDA graph
  double clip_norm = 0;  ///< largest norm of all gradients; 0: off
  int warmup = 3;        ///< eager steps for each set of shapes before it is captured
};

/// A whole training step of a loop of one's own: gradients to none, forward and loss under
/// autocast, backward with the averaging over ranks, scaling in fp16, clipping, optimizer.
///
///   yoke::DistributedDataParallel parallel(model, world);
///   optim::SGD optimizer(parallel.parameters(), {.lr = 0.1, .momentum = 0.9});
///   train::Step step([&](const std::vector<at::Tensor>& batch) {
///     return at::cross_entropy_loss(parallel(batch[0]), batch[1]);
///   }, optimizer, world, {.precision = precision::Precision::bf16});
///   for (const data::Batch& batch : loader.epoch(0)) step({batch.input, batch.target});
///
/// On a card, after a few eager steps, it is captured in a CUDA graph and replayed: the loss
/// function then no longer runs on the host. The learning rate may change between steps. A step
/// that cannot be captured, and sets of shapes beyond the fourth, run eagerly; one line says so.
/// Ranks: every rank gives batches of the same shapes in the same order.
/// Borrows the optimizer and the world. Threads: one at a time.
/// Streams: the caller's; runs on its own and orders both.
/// Errors: those of what it calls; unsupported for a precision that the device does not have.
class Step {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Loss = std::function<at::Tensor(const Tensors& batch)>;

  Step(Loss loss, optim::Optimizer& optimizer, comm::World& world, StepOptions options = {});
  ~Step();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  /// The loss, a scalar on the device: reading it waits.
  at::Tensor operator()(const Tensors& batch);

  [[nodiscard]] std::size_t replays() const noexcept;          ///< steps that came from a graph
  [[nodiscard]] const std::string& obstacle() const noexcept;  ///< why there are none; empty: none

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace yoke::train
