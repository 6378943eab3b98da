#pragma once

#include <ATen/core/Tensor.h>

namespace yoke::data {

/// For which rank a loader works, and where its batches go.
struct Placement {
  int rank{0};
  int world_size{1};
  at::Device device{at::kCPU};
  int local_world_size{1};  ///< ranks that share this machine's cores
};

}  // namespace yoke::data
