#include "yoke/comm/device.hpp"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#ifdef YOKE_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace yoke::comm {

int cuda_device_count() {
  // The guard is registered when libtorch_cuda is loaded; it is null in a CPU build.
  if (!c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA)) return 0;
  return c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).deviceCount();
}

void set_current_device(at::Device device) {
  if (device.is_cuda()) c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
}

#ifdef YOKE_CUDA

void synchronize(at::Device device) {
  if (!device.is_cuda()) return;
  const c10::DeviceIndex before = c10::cuda::current_device();
  c10::cuda::set_device(device.index());
  c10::cuda::device_synchronize();
  c10::cuda::set_device(before);
}

DeviceMemory device_memory(at::Device device) {
  if (!device.is_cuda()) return {};
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
  constexpr std::size_t kAll = 0;  // the first of the per-pool statistics is their sum
  return {.allocated = static_cast<std::uint64_t>(stats.allocated_bytes[kAll].current),
          .peak = static_cast<std::uint64_t>(stats.allocated_bytes[kAll].peak),
          .reserved = static_cast<std::uint64_t>(stats.reserved_bytes[kAll].current)};
}

void reset_peak_memory(at::Device device) {
  if (device.is_cuda()) c10::cuda::CUDACachingAllocator::resetPeakStats(device.index());
}

#else

void synchronize(at::Device) {}
DeviceMemory device_memory(at::Device) { return {}; }
void reset_peak_memory(at::Device) {}

#endif

}  // namespace yoke::comm
