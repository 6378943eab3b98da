#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "compile.hpp"
#include "yoke/kernels/kernels.hpp"

namespace yoke::kernels {

/// A kernel on one device, ready to launch.
struct DeviceFunction {
  void* handle = nullptr;  ///< CUfunction
  int threads = 0;         ///< of a block
  int blocks_at_once = 0;  ///< that the whole device holds
};

/// Kernels take their element type by these two.
struct ElementType {
  at::ScalarType dtype;
  int vector;  ///< elements at once
};

/// The widest vector for rows of `channels` elements; 1 where they are no multiple of it.
[[nodiscard]] ElementType element_type(const at::Tensor& tensor, std::int64_t channels);

/// Whether the device of `tensor` can run our kernels: sm_80 or later, and NVRTC there to compile
/// them. Says once why not.
[[nodiscard]] bool runs_kernels(const at::Tensor& tensor);

/// Function `name` of `source` for the current device, compiled and loaded on first use.
/// Threads: any. Errors: those of compile(); cuda with the driver's words.
[[nodiscard]] DeviceFunction device_function(const KernelSource& source, const ElementType& type,
                                             const char* name, int threads);

struct Grid {
  unsigned x = 1;
  unsigned y = 1;
};

/// Starts it on the current stream. `args`: the kernel's one argument, read before the return.
void launch(const DeviceFunction& function, Grid grid, const void* args);

/// Adds to what kernels::traffic() tells.
void count_traffic(const Traffic& more) noexcept;

/// `count` zeros on the current device for one launch that leaves them zero; kernels that run at
/// the same time get different ones.
[[nodiscard]] unsigned* arrival_counters(std::int64_t count);

}  // namespace yoke::kernels
