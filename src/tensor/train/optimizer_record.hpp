#pragma once

#include "yoke/checkpoint/state_dict.hpp"
#include "yoke/core/json.hpp"
#include "yoke/optim/state_dict.hpp"

namespace yoke::train {

// An optimizer's state as a checkpoint keeps it: its tensors under "<parameter>.<slot>", the rest
// as plain facts. A parameter is called by its name, or by its key where it has none.
struct OptimizerRecord {
  checkpoint::StateDict tensors;
  core::Json groups;
};

[[nodiscard]] OptimizerRecord to_record(const optim::OptimizerState& state);

// Errors: corrupt_data where the two do not belong together.
[[nodiscard]] optim::OptimizerState from_record(const OptimizerRecord& record);

}  // namespace yoke::train
