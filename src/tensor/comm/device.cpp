#include "yoke/comm/device.hpp"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#ifdef YOKE_CUDA
#include <array>
#include <string_view>

#include <ATen/cuda/CUDAContextLight.h>
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
          .reserved = static_cast<std::uint64_t>(stats.reserved_bytes[kAll].current),
          .peak_reserved = static_cast<std::uint64_t>(stats.reserved_bytes[kAll].peak)};
}

std::string device_uuid(at::Device device) {
  if (!device.is_cuda()) return {};
  constexpr std::array<std::size_t, 5> kParts{4, 2, 2, 2, 6};  // bytes between dashes
  const auto& uuid = at::cuda::getDeviceProperties(device.index())->uuid;
  std::string out = "GPU";
  std::size_t next = 0;
  for (const std::size_t part : kParts) {
    out += '-';
    for (std::size_t i = 0; i < part; ++i) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(uuid.bytes[next++]);
      out += kDigits[byte >> 4U];
      out += kDigits[byte & 15U];
    }
  }
  return out;
}

std::uint64_t device_capacity(at::Device device) {
  if (!device.is_cuda()) return 0;
  return at::cuda::getDeviceProperties(device.index())->totalGlobalMem;
}

void reset_peak_memory(at::Device device) {
  if (device.is_cuda()) c10::cuda::CUDACachingAllocator::resetPeakStats(device.index());
}

#else

void synchronize(at::Device) {}
DeviceMemory device_memory(at::Device) { return {}; }
std::string device_uuid(at::Device) { return {}; }
std::uint64_t device_capacity(at::Device) { return 0; }
void reset_peak_memory(at::Device) {}

#endif

}  // namespace yoke::comm
