#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace yoke::checkpoint {

/// Tensors under their names, in order.
using StateDict = std::vector<std::pair<std::string, at::Tensor>>;

/// The module's parameters and buffers under the names and in the order of Python's
/// `module.state_dict()`: of each module its parameters, its buffers, then its children. A tied
/// parameter stands under each of its names.
///
///   save_state_dict("state_dict.pt", state_dict(*model));
///
/// Owns: nothing; the tensors are detached aliases, so a step of training changes them.
[[nodiscard]] StateDict state_dict(const torch::nn::Module& module);

struct LoadOptions {
  bool strict = true;  ///< whether a missing or unexpected name is an error
  std::string strip_prefix =
      "module.";  ///< taken off if every name of the state has it and none of the module's
  std::vector<std::string> leave_out =
      {};  ///< names that are skipped on both sides, e.g. a head of other classes
};

struct LoadReport {
  std::vector<std::string> missing = {};     ///< in the module, not in the state
  std::vector<std::string> unexpected = {};  ///< in the state, not in the module
};

/// Copies the state into the module's own parameters and buffers, to whatever device and dtype they
/// have.
///
///   load_into(*model, load_state_dict("state_dict.pt"));
///
/// Returns what did not match; with `strict` that is nothing.
/// Errors: invalid_argument with all missing and unexpected names and all shapes that differ (these
///   also without `strict`), before anything is copied.
/// Cost: one copy of each tensor.
LoadReport load_into(torch::nn::Module& module, const StateDict& state,
                     const LoadOptions& options = {});

}  // namespace yoke::checkpoint
