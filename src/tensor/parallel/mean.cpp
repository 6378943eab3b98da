#include "yoke/parallel/mean.hpp"

#include <cmath>

#include <ATen/Functions.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>

#include "step_count.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::parallel {
namespace {

using core::text;

struct StepCounts {
  std::mutex mutex;
  std::unordered_map<int, double> by_task;
};

StepCounts& step_counts() {
  static StepCounts counts;
  return counts;
}

class Mean final : public torch::autograd::Function<Mean> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& sum,
                            double count) {
    context->saved_data["count"] = count;
    return count == 0.0 ? at::zeros_like(sum) : sum / count;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const double count = context->saved_data["count"].toDouble();
    set_step_count(count);
    const at::Tensor& gradient = gradients[0];
    if (!gradient.defined()) return {at::Tensor(), at::Tensor()};
    return {count == 0.0 ? at::zeros_like(gradient) : gradient / count, at::Tensor()};
  }
};

}  // namespace

void set_step_count(double count) {
  const int task = torch::autograd::get_current_graph_task_id();
  StepCounts& counts = step_counts();
  const std::lock_guard lock(counts.mutex);
  const auto [entry, added] = counts.by_task.emplace(task, count);
  if (added) {
    torch::autograd::Engine::get_default_engine().queue_callback([task] {
      StepCounts& all = step_counts();
      const std::lock_guard again(all.mutex);
      all.by_task.erase(task);
    });
  } else if (entry->second != count) {
    throw Error(
        Code::invalid_argument,
        text("backward: two means with counts ", entry->second, " and ", count, " in one backward"),
        "add the sums and the counts first and take one mean, or call backward for each");
  }
}

std::optional<double> step_count() {
  StepCounts& counts = step_counts();
  const std::lock_guard lock(counts.mutex);
  const auto found = counts.by_task.find(torch::autograd::get_current_graph_task_id());
  if (found == counts.by_task.end()) return std::nullopt;
  return found->second;
}

at::Tensor mean(const at::Tensor& sum, double count) {
  if (!std::isfinite(count) || count < 0.0) {
    throw Error(Code::invalid_argument, text("mean: the count is ", count),
                "give the number of elements summed, 0 or more");
  }
  if (!sum.defined() || sum.numel() != 1) {
    throw Error(Code::invalid_argument, "mean: the sum is not a scalar", "sum the losses first");
  }
  return Mean::apply(sum, count);
}

}  // namespace yoke::parallel
