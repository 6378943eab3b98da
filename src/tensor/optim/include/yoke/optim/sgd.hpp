#pragma once

#include <vector>

#include "yoke/optim/optimizer.hpp"

namespace yoke::optim {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
};

/// Stochastic gradient descent as torch.optim.SGD, through torch's fused kernels.
///
///   SGD optimizer(model->named_parameters(), {.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-4});
///   optimizer.zero_grad();
///   loss.backward();
///   optimizer.step();
///
/// State: momentum_buffer, as large as the parameter, from its first gradient on; none without
/// momentum. Errors: invalid_argument for a negative option, or Nesterov with dampening or without
/// momentum. Cost: one pass over parameters, gradients and momentum; on CUDA one launch per device
/// and dtype.
class SGD final : public Optimizer {
 public:
  explicit SGD(const NamedParameters& parameters, const SGDOptions& options = {});

  /// More parameters, with settings of their own.
  void add_param_group(const NamedParameters& parameters, const SGDOptions& options);

 private:
  [[nodiscard]] std::span<const std::string_view> slot_names() const override;
  void step_list(std::size_t group, List& list) override;
  [[nodiscard]] Options options(std::size_t group) const override;
  void set_options(std::size_t group, const Options& options) override;

  std::vector<SGDOptions> options_;  // per group; lr counts only at the start
};

}  // namespace yoke::optim
