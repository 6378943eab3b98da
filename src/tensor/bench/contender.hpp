#pragma once

#include <memory>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "yoke/bench/step_bench.hpp"
#include "yoke/models/models.hpp"
#include "yoke/optim/optim.hpp"
#include "yoke/parallel/data_parallel.hpp"
#include "yoke/parallel/distributed_data_parallel.hpp"
#include "yoke/train/step.hpp"

namespace yoke::bench {

struct Inputs {
  at::Tensor images;  // [batch, channels, side, side]
  at::Tensor labels;  // [batch] int64
};

[[nodiscard]] Inputs make_inputs(const StepBenchOptions& options, const comm::World& world);

// One way to train: its own model, wrapper and optimizer, on data that all share.
class Contender {
 public:
  Contender(std::string way, const StepBenchOptions& options, comm::World& world,
            const Inputs& inputs);

  void step();

  // Seconds for `count` steps with nothing left to do.
  double time(int count);

  [[nodiscard]] const std::string& way() const { return way_; }
  [[nodiscard]] double loss() const;
  [[nodiscard]] std::size_t replays() const { return step_->replays(); }
  [[nodiscard]] const std::string& obstacle() const { return step_->obstacle(); }
  [[nodiscard]] std::size_t parameter_bytes() const;

 private:
  using Model = std::shared_ptr<models::ImageClassifier>;

  [[nodiscard]] at::Tensor forward(const at::Tensor& x);

  std::string way_;
  const Inputs& inputs_;
  Model model_;
  std::optional<optim::SGD> optimizer_;
  std::optional<DistributedDataParallel<Model>> distributed_;
  std::optional<DataParallel<Model>> replicated_;
  std::optional<train::Step> step_;
  at::Tensor loss_;
};

}  // namespace yoke::bench
