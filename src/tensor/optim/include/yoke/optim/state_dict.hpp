#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <torch/types.h>

namespace yoke::optim {

/// A setting of a parameter group as Python holds it: None, bool, int, float, or a pair of floats.
using OptionValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::pair<double, double>>;

/// What one parameter has gathered, by PyTorch's names and in its order: {"step", ...},
/// {"exp_avg", ...}. `step` is a float32 scalar on the CPU; the rest lies as the parameter does.
using ParameterState = std::vector<std::pair<std::string, at::Tensor>>;

struct GroupState {
  std::vector<std::pair<std::string, OptionValue>>
      options;                           ///< "lr", "momentum", ... in PyTorch's order
  std::vector<std::int64_t> params;      ///< keys of OptimizerState::state
  std::vector<std::string> param_names;  ///< one for each of `params`, or none at all
};

/// An optimizer's state in the layout of Python's optimizer.state_dict(): written as the dictionary
/// {"state": {0: {...}}, "param_groups": [{..., "params": [0, 1], "param_names": [...]}]} it loads
/// there, and what Python wrote loads here.
///
/// Owns: shares the tensors with the optimizer that it came from; the next step() changes them.
struct OptimizerState {
  std::map<std::int64_t, ParameterState> state;  ///< no entry for a parameter that has none
  std::vector<GroupState> param_groups;
};

}  // namespace yoke::optim
