#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yoke/train/any_module.hpp"
#include "yoke/train/trainer.hpp"

namespace yoke::comm {
class World;
}

namespace yoke::train {

// A model behind one of the forms of data parallelism, as the step loop sees it.
//
// Micro-batches of a window are weighted by their rows: forward_loss's gradient times
// loss_factor(), after the last one finish_window(), is the exact mean over all rows of the window
// and of all ranks.
class WrappedModel {
 public:
  WrappedModel() = default;
  WrappedModel(const WrappedModel&) = delete;
  WrappedModel& operator=(const WrappedModel&) = delete;
  virtual ~WrappedModel() = default;

  // Begins the forward pass of micro-batch `index` of `count`.
  virtual void begin_micro_batch(std::int64_t index, std::int64_t count) = 0;
  virtual at::Tensor forward(const at::Tensor& input) = 0;
  // What the loss over `rows` rows is multiplied with before backward.
  virtual double loss_factor(std::int64_t rows) = 0;
  // In place of forward and backward where this rank has no row.
  virtual void idle_micro_batch(const at::Tensor& no_rows) = 0;
  virtual void finish_window() {}

  // Collective: the mode of the model, after its buffers were made equal on all ranks.
  virtual void train(bool on) = 0;
};

[[nodiscard]] std::unique_ptr<WrappedModel> wrap(const AnyModule& model, comm::World& world,
                                                 Parallel parallel,
                                                 const std::vector<int>& device_ids);

}  // namespace yoke::train
