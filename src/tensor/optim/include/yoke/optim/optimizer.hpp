#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/optim/named_parameters.hpp"
#include "yoke/optim/state_dict.hpp"

namespace yoke::optim {

/// What SGD and AdamW share: groups of parameters, the learning rate, state in PyTorch's layout.
///
/// A parameter whose gradient is undefined is left alone, as in PyTorch: no weight decay, no
/// momentum, no step count. Gradients may be views into a bucket.
///
/// Owns: its state. Shares the parameters with the module.
/// Threads: one at a time.
/// Streams: runs on the caller's; step() and zero_grad() never wait for the device.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Changes every parameter that has a gradient.
  /// `found_inf`: a float32 scalar on the parameters' device; where it is not 0 nothing is changed,
  /// without the host knowing (precision::GradScaler). Undefined: always changed. Errors:
  /// unsupported for a sparse gradient; invalid_argument for one of another shape than its
  /// parameter. Names the parameter.
  void step(const at::Tensor& found_inf = {});

  /// Drops the gradients, so that the next backward makes new ones; with `set_to_none` false, fills
  /// them with zeros where they lie.
  void zero_grad(bool set_to_none = true);

  [[nodiscard]] std::size_t groups() const noexcept { return groups_.size(); }
  [[nodiscard]] std::vector<at::Tensor> parameters() const;

  [[nodiscard]] double lr(std::size_t group = 0) const { return groups_.at(group).lr; }

  /// The rate of every group from now on.
  void set_lr(double lr);

  /// From now on the fused operations read the rates from the device, so that a step captured in a
  /// CUDA graph follows them; set_lr() and set_lr_factor() then write them on the current stream.
  /// They are float32 there. No effect on parameters of the CPU.
  void keep_lr_on_device();

  /// Each group's rate becomes `factor` times the rate that it was made with: the form for
  /// schedules, `optimizer.set_lr_factor(schedule.factor(step))`.
  void set_lr_factor(double factor);

  [[nodiscard]] OptimizerState state_dict() const;

  /// Takes over state and settings, copied to each parameter's device and dtype. Where both sides
  /// have names, they are matched by name, whatever the order; otherwise by position. Errors:
  /// invalid_argument, nothing changed, for parameters that only one side has, another division
  /// into groups, state for a parameter that is frozen here, or a wrong shape; names them.
  void load_state_dict(const OptimizerState& saved);

 protected:
  using Options = std::vector<std::pair<std::string, OptionValue>>;

  struct Parameter {
    std::string name;
    at::Tensor value;
    std::vector<at::Tensor> slots;  ///< in the order of slot_names(); undefined: not there yet
  };

  /// Parameters of one group, device and dtype that have a gradient: one call of a fused operation.
  /// Values, gradients and slots at one index lie in memory alike.
  struct List {
    std::vector<at::Tensor> values;
    std::vector<at::Tensor> gradients;
    std::vector<Parameter*> parameters;
    bool fused = true;                    ///< whether torch's fused kernels take it
    std::optional<at::Tensor> found_inf;  ///< of step(); nothing: always

    /// Slot `index` of each parameter.
    [[nodiscard]] std::vector<at::Tensor> slots(std::size_t index) const;
  };

  Optimizer() = default;

  /// The group's rate on the device; undefined: it is the host's.
  [[nodiscard]] const at::Tensor& device_lr(std::size_t group) const {
    return groups_.at(group).device_lr;
  }

  void add_group(const NamedParameters& parameters, double lr);

  [[nodiscard]] virtual std::span<const std::string_view> slot_names() const = 0;
  virtual void step_list(std::size_t group, List& list) = 0;

  /// The group's settings but the rate, in PyTorch's order.
  [[nodiscard]] virtual Options options(std::size_t group) const = 0;

  /// Takes over `options`: some of the names that options() gives, each with a value of its type.
  virtual void set_options(std::size_t group, const Options& options) = 0;

 private:
  struct Group {
    std::vector<Parameter> parameters;
    double lr = 0;
    double initial_lr = 0;
    at::Tensor device_lr;  // scalar float32; undefined: not kept

    void set_lr(double to);
  };
  /// A group of a saved state and, for each of our parameters, its state there; null: it had none.
  struct Source {
    const GroupState* group;
    std::vector<const ParameterState*> states;
  };

  [[nodiscard]] std::vector<List> lists(Group& group) const;
  [[nodiscard]] bool named() const;
  [[nodiscard]] std::vector<Source> sources(const OptimizerState& saved) const;
  [[nodiscard]] std::vector<at::Tensor> slots_from(const ParameterState& saved,
                                                   const Parameter& parameter,
                                                   const std::string& called) const;

  std::vector<Group> groups_;
};

}  // namespace yoke::optim
