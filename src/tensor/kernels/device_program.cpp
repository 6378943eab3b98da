#include "device_program.hpp"

#include <atomic>

#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/kernels/kernels.hpp"

#ifdef YOKE_CUDA
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <map>
#include <tuple>

#include <ATen/Functions.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace yoke::kernels {

using core::text;

namespace {
std::atomic<bool> enabled{true};
std::atomic<std::int64_t> norm_bytes{0};
std::atomic<std::int64_t> pooling_bytes{0};
}  // namespace

void enable(bool on) noexcept { enabled = on; }
bool is_enabled() noexcept { return enabled; }

void count_traffic(const Traffic& more) noexcept {
  norm_bytes += more.norm;
  pooling_bytes += more.pooling;
}

Traffic traffic() noexcept { return {.norm = norm_bytes, .pooling = pooling_bytes}; }

ElementType element_type(const at::Tensor& tensor, std::int64_t channels) {
  const int widest = 16 / static_cast<int>(tensor.element_size());
  return {tensor.scalar_type(), channels % widest == 0 ? widest : 1};
}

#ifdef YOKE_CUDA

namespace {

/// The part of the driver's C interface that is used here. The library is torch's already.
struct Driver {
  int (*load)(void**, const void*);
  int (*function)(void**, void*, const char*);
  int (*occupancy)(int*, void*, int, std::size_t);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**);
  int (*error_text)(int, const char**);
};

const Driver& driver() {
  static const Driver loaded = [] {
    Driver found{};
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
          library == nullptr ? nullptr : ::dlsym(library, name));
      if (function == nullptr) {
        throw Error(Code::cuda, text("load the driver: libcuda.so.1 has no ", name),
                    "look at yoke doctor");
      }
    };
    find(found.load, "cuModuleLoadData");
    find(found.function, "cuModuleGetFunction");
    find(found.occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    find(found.launch, "cuLaunchKernel");
    find(found.error_text, "cuGetErrorString");
    return found;
  }();
  return loaded;
}

void check(int result, const std::string& doing) {
  if (result == 0) return;
  const char* words = nullptr;
  driver().error_text(result, &words);
  throw Error(Code::cuda, text(doing, ": ", words == nullptr ? "unknown error" : words));
}

int capability_of(const cudaDeviceProp& device) { return device.major * 10 + device.minor; }

int type_number(at::ScalarType dtype) {
  return dtype == at::kFloat ? 0 : dtype == at::kHalf ? 1 : 2;
}

/// Loaded modules and functions of all devices; they live as long as the process.
struct Loaded {
  using ModuleKey = std::tuple<int, const KernelSource*, at::ScalarType, int>;
  std::mutex mutex;
  std::map<ModuleKey, void*> modules;
  std::map<std::pair<ModuleKey, std::string_view>, DeviceFunction> functions;
};

Loaded& loaded() {
  static auto* all = new Loaded();  // outlives every thread that may still launch
  return *all;
}

void* module_of(const Loaded::ModuleKey& key) {
  void*& module = loaded().modules[key];
  if (module != nullptr) return module;
  const auto& [device, source, dtype, vector] = key;
  const int capability =
      capability_of(*at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(device)));
  const std::vector<std::string> defines{text("YOKE_TYPE=", type_number(dtype)),
                                         text("YOKE_VECTOR=", vector)};
  if (driver().load(&module, compile_cached(*source, capability, defines).c_str()) != 0) {
    module = nullptr;  // a cache that holds something else
    check(driver().load(&module, compile(*source, capability, defines).c_str()),
          text("load kernels ", source->name));
  }
  return module;
}

}  // namespace

bool runs_kernels(const at::Tensor& tensor) {
  if (!tensor.is_cuda() || !enabled) return false;
  const bool young = at::cuda::getDeviceProperties(tensor.device().index())->major >= 8;
  if (young && can_compile()) return true;
  static const bool said = [young] {
    core::say(core::Level::warning,
              young ? "fused kernels are off: libnvrtc is not there; torch's operations run instead"
                    : "fused kernels are off: the card is older than sm_80; torch's operations run "
                      "instead");
    return true;
  }();
  return !said;
}

namespace {

/// The driver API works on the thread's current context, and autograd's threads have none before
/// their first runtime call.
void need_context(int device) {
  thread_local int made_for = -1;
  if (made_for == device) return;
  C10_CUDA_CHECK(cudaSetDevice(device));
  made_for = device;
}

}  // namespace

DeviceFunction device_function(const KernelSource& source, const ElementType& type,
                               const char* name, int threads) {
  const int device = c10::cuda::current_device();
  need_context(device);
  const Loaded::ModuleKey key{device, &source, type.dtype, type.vector};
  const std::lock_guard lock(loaded().mutex);
  DeviceFunction& function = loaded().functions[{key, name}];
  if (function.handle != nullptr) return function;
  DeviceFunction made{.handle = nullptr, .threads = threads};
  check(driver().function(&made.handle, module_of(key), name), text("find kernel ", name));
  int blocks = 0;
  check(driver().occupancy(&blocks, made.handle, threads, 0), text("ask about kernel ", name));
  made.blocks_at_once =
      std::max(1, blocks) * at::cuda::getCurrentDeviceProperties()->multiProcessorCount;
  function = made;
  return function;
}

void launch(const DeviceFunction& function, Grid grid, const void* args) {
  need_context(c10::cuda::current_device());
  void* list[] = {const_cast<void*>(args)};
  check(driver().launch(function.handle, grid.x, grid.y, 1, static_cast<unsigned>(function.threads),
                        1, 1, 0, c10::cuda::getCurrentCUDAStream().stream(), list, nullptr),
        "start a kernel");
}

unsigned* arrival_counters(std::int64_t count) {
  constexpr std::int64_t kCounters = 1 << 16;
  struct Pool {
    at::Tensor zeros;
    std::int64_t next = 0;
  };
  static std::mutex mutex;
  static auto* pools = new std::map<int, Pool>();
  const std::lock_guard lock(mutex);
  Pool& pool = (*pools)[c10::cuda::current_device()];
  if (!pool.zeros.defined()) {
    pool.zeros = at::zeros({kCounters}, at::TensorOptions().dtype(at::kInt).device(at::kCUDA));
  }
  if (pool.next + count > kCounters) pool.next = 0;
  auto* counters = reinterpret_cast<unsigned*>(pool.zeros.data_ptr<int>()) + pool.next;
  pool.next += count;
  return counters;
}

#else

bool runs_kernels(const at::Tensor&) { return false; }

namespace {
[[noreturn]] void refuse() { throw Error(Code::internal, "run a kernel: this build has no CUDA"); }
}  // namespace

DeviceFunction device_function(const KernelSource&, const ElementType&, const char*, int) {
  refuse();
}
void launch(const DeviceFunction&, Grid, const void*) { refuse(); }
unsigned* arrival_counters(std::int64_t) { refuse(); }

#endif

}  // namespace yoke::kernels
