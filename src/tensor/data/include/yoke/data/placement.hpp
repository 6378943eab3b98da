#pragma once

#include <ATen/core/Tensor.h>

namespace yoke::data {

/// For which rank a loader works, and where its batches go.
struct Placement {
  int rank{0};
  int world_size{1};
  at::Device device{at::kCPU};
};

}  // namespace yoke::data
