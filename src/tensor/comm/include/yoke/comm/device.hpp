#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

namespace yoke::comm {

/// Cards that torch sees in this process; 0 in a build or on a machine without CUDA. The first call
/// opens the driver.
[[nodiscard]] int cuda_device_count();

/// Makes `device` the thread's current device; no effect for the CPU.
void set_current_device(at::Device device);

/// Waits until all work given to `device` so far has ended; no effect for the CPU.
void synchronize(at::Device device);

/// Bytes that torch's allocator holds on a device; zeros for the CPU.
struct DeviceMemory {
  std::uint64_t allocated = 0;
  std::uint64_t peak = 0;
  std::uint64_t reserved = 0;
  std::uint64_t peak_reserved = 0;
};
[[nodiscard]] DeviceMemory device_memory(at::Device device);

/// "GPU-1b2c...", as nvidia-smi shows it; empty for the CPU.
[[nodiscard]] std::string device_uuid(at::Device device);

/// Bytes of memory that a card has; 0 for the CPU.
[[nodiscard]] std::uint64_t device_capacity(at::Device device);

/// Starts new peaks in device_memory().
void reset_peak_memory(at::Device device);

}  // namespace yoke::comm
