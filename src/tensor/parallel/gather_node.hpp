#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yoke/parallel/replica_set.hpp"

namespace yoke::parallel {

/// Gives results[j], for each j of `differentiable`, a history: a node whose backward runs one
/// backward per replica from outputs[replica][j], adds the replicas' gradients into the module's,
/// and hands the inputs' gradients on.
void join_graphs(const std::shared_ptr<ReplicaSet::State>& set, std::vector<at::Tensor>& results,
                 const std::vector<std::size_t>& differentiable,
                 std::vector<std::vector<at::Tensor>> outputs,
                 const std::vector<std::int64_t>& rows, std::vector<ScatteredInput> inputs);

}  // namespace yoke::parallel
