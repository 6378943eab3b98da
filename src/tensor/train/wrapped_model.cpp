#include "wrapped_model.hpp"

#include <utility>

#include <ATen/ops/_foreach_mul.h>

#include "yoke/comm/world.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/nn/sync_batch_norm.hpp"
#include "yoke/parallel/data_parallel.hpp"
#include "yoke/parallel/distributed_data_parallel.hpp"

namespace yoke::train {
namespace {

/// Over ranks: the engine weights by rows itself, and sums micro-batches as torch does.
class OverRanks final : public WrappedModel {
 public:
  OverRanks(const AnyModule& model, comm::World& world)
      : parallel_(model, world), model_(parallel_.module()) {}
  ~OverRanks() override { parallel_.engine().set_synchronising(true); }

  void begin_micro_batch(std::int64_t index, std::int64_t count) override {
    count_ = count;
    parallel_.engine().set_synchronising(index + 1 == count);
  }
  at::Tensor forward(const at::Tensor& input) override { return parallel_(input); }
  double loss_factor(std::int64_t) override { return 1.0 / static_cast<double>(count_); }
  void idle_micro_batch(const at::Tensor& no_rows) override {
    if (!nn::has_synchronised_norms(*model_)) return parallel_.idle_step();
    (parallel_(no_rows).sum() * loss_factor(0)).backward();  // norms meet in both directions
  }
  void train(bool on) override { parallel_.train(on); }

 private:
  parallel::DistributedDataParallel<AnyModule> parallel_;
  AnyModule& model_;
  std::int64_t count_ = 1;
};

/// In one process. Gradients gather as sum(rows_m / estimate * gradient_m) / count; one factor
/// makes that the mean, and it is 1 unless a micro-batch was short.
class InOneProcess : public WrappedModel {
 public:
  explicit InOneProcess(AnyModule model) : model_(std::move(model)) {}

  void begin_micro_batch(std::int64_t index, std::int64_t count) override {
    if (index > 0) return;
    count_ = static_cast<double>(count);
    estimate_ = total_ = 0;
  }
  at::Tensor forward(const at::Tensor& input) override { return model_.forward(input); }
  double loss_factor(std::int64_t rows) override {
    const auto counted = static_cast<double>(rows);
    if (estimate_ == 0) estimate_ = counted;
    total_ += counted;
    return counted / estimate_ / count_;
  }
  void idle_micro_batch(const at::Tensor&) override {}
  void finish_window() override {
    if (total_ == 0 || total_ == estimate_ * count_) return;
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& parameter : model_->parameters()) {
      if (parameter.grad().defined()) gradients.push_back(parameter.grad());
    }
    if (!gradients.empty()) at::_foreach_mul_(gradients, estimate_ * count_ / total_);
  }
  void train(bool on) override { model_->train(on); }

 private:
  AnyModule model_;
  double count_ = 1;
  double estimate_ = 0;  // rows of the window's first micro-batch
  double total_ = 0;
};

class OverDevices final : public InOneProcess {
 public:
  OverDevices(const AnyModule& model, const std::vector<int>& device_ids)
      : InOneProcess(model),
        parallel_(
            model, [](AnyModule& from, at::Device device) { return from.cloned(device); },
            parallel::DataParallelOptions{.device_ids = device_ids}) {}

  at::Tensor forward(const at::Tensor& input) override { return parallel_(input); }

 private:
  parallel::DataParallel<AnyModule> parallel_;
};

}  // namespace

std::unique_ptr<WrappedModel> wrap(const AnyModule& model, comm::World& world, Parallel parallel,
                                   const std::vector<int>& device_ids) {
  if (parallel == Parallel::ddp) return std::make_unique<OverRanks>(model, world);
  if (world.size() > 1) {
    throw Error(
        Code::invalid_argument,
        core::text("train over ", world.size(),
                   " ranks without DistributedDataParallel: each would train its own model"),
        "use Parallel::ddp, or start one rank");
  }
  if (parallel == Parallel::dp) return std::make_unique<OverDevices>(model, device_ids);
  return std::make_unique<InOneProcess>(model);
}

}  // namespace yoke::train
