#pragma once

#include <utility>
#include <vector>

#include "yoke/optim/optimizer.hpp"

namespace yoke::optim {

struct AdamWOptions {
  double lr = 1e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
};

/// Adam with decoupled weight decay as torch.optim.AdamW, through torch's fused kernels.
///
///   AdamW optimizer(model->named_parameters(), {.lr = 3e-4, .weight_decay = 0.1});
///
/// State: step (one float32 on the parameter's device), exp_avg, exp_avg_sq, with amsgrad also
///   max_exp_avg_sq, each as large as the parameter, from its first gradient on.
/// Errors: invalid_argument for an option outside its range.
/// Cost: one pass over parameters, gradients and state; on CUDA two launches per device and dtype.
class AdamW final : public Optimizer {
 public:
  explicit AdamW(const NamedParameters& parameters, const AdamWOptions& options = {});

  /// More parameters, with settings of their own.
  void add_param_group(const NamedParameters& parameters, const AdamWOptions& options);

 private:
  [[nodiscard]] std::span<const std::string_view> slot_names() const override;
  void step_list(std::size_t group, List& list) override;
  [[nodiscard]] Options options(std::size_t group) const override;
  void set_options(std::size_t group, const Options& options) override;

  std::vector<AdamWOptions> options_;  // per group; lr counts only at the start
};

}  // namespace yoke::optim
