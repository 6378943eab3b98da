#pragma once

#include <string>
#include <utility>
#include <vector>

#include "yoke/parallel/gradient_engine.hpp"

namespace yoke::parallel {

/// Collective. Compares names, shapes, dtypes and requires_grad of the tensors with those of the
/// other ranks. Errors: invalid_argument on every rank, naming the first tensor that differs and
/// both ranks.
void require_same_models(comm::Group& host_group, const NamedTensors& parameters,
                         const NamedTensors& buffers);

/// Errors: invalid_argument naming the first tensor that is not on `device`, with the line that
/// moves it.
void require_on_device(const NamedTensors& tensors, at::Device device, int rank);

/// Collective. Rank 0's values on every rank, packed so that few broadcasts run; any dtypes.
void broadcast_from_rank_0(comm::Group& group, const NamedTensors& tensors);

}  // namespace yoke::parallel
