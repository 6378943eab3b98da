#include "yoke/device/nvml.hpp"

#include <dlfcn.h>

#include <array>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::device {
namespace {

// The few declarations of nvml.h that are needed, so that no toolkit is: its binary interface is
// fixed by the suffix of each function's name.
using Result = int;
using Handle = void*;
constexpr Result kSuccess = 0;

struct PciInfo {  // nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3
  std::array<char, 16> legacy_bus_id;
  unsigned domain, bus, device, device_id, subsystem_id;
  std::array<char, 32> bus_id;
};

struct MemoryInfo {  // nvmlMemory_t
  unsigned long long total, free, used;
};

/// A library opened with dlopen.
class Library {
 public:
  explicit Library(const std::string& name)
      : handle_(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  ~Library() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  [[nodiscard]] bool is_open() const noexcept { return handle_ != nullptr; }

  /// Sets `function` to the library's function of that name; false if it has none.
  template <class Function>
  [[nodiscard]] bool find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(::dlsym(handle_, name));
    return function != nullptr;
  }

 private:
  void* handle_;
};

struct Functions {
  Result (*init)();
  Result (*shutdown)();
  const char* (*error_string)(Result);
  Result (*count)(unsigned*);
  Result (*handle)(unsigned, Handle*);
  Result (*uuid)(Handle, char*, unsigned);
  Result (*name)(Handle, char*, unsigned);
  Result (*pci)(Handle, PciInfo*);
  Result (*memory)(Handle, MemoryInfo*);
  Result (*capability)(Handle, int*, int*);  // null: this driver has none

  [[nodiscard]] bool load(const Library& library) {
    if (!library.find("nvmlDeviceGetCudaComputeCapability", capability)) capability = nullptr;
    return library.find("nvmlInit_v2", init) && library.find("nvmlShutdown", shutdown) &&
           library.find("nvmlErrorString", error_string) &&
           library.find("nvmlDeviceGetCount_v2", count) &&
           library.find("nvmlDeviceGetHandleByIndex_v2", handle) &&
           library.find("nvmlDeviceGetUUID", uuid) && library.find("nvmlDeviceGetName", name) &&
           library.find("nvmlDeviceGetPciInfo_v3", pci) &&
           library.find("nvmlDeviceGetMemoryInfo", memory);
  }
};

class DriverNvml final : public Nvml {
 public:
  DriverNvml(std::unique_ptr<Library> library, const Functions& functions)
      : library_(std::move(library)), call_(functions) {}
  ~DriverNvml() override { call_.shutdown(); }
  DriverNvml(const DriverNvml&) = delete;
  DriverNvml& operator=(const DriverNvml&) = delete;

  [[nodiscard]] int count() const override {
    unsigned count = 0;
    require(call_.count(&count), "count cards");
    return static_cast<int>(count);
  }

  [[nodiscard]] Card card(int index) const override {
    const std::string doing = core::text("read card ", index);
    Handle handle = nullptr;
    require(call_.handle(static_cast<unsigned>(index), &handle), doing);
    std::array<char, 96> text{};
    Card card{.index = index};
    require(call_.uuid(handle, text.data(), text.size()), doing);
    card.uuid = text.data();
    require(call_.name(handle, text.data(), text.size()), doing);
    card.name = text.data();
    PciInfo pci{};
    require(call_.pci(handle, &pci), doing);
    card.bus_id = pci.bus_id.data();
    MemoryInfo memory{};
    require(call_.memory(handle, &memory), doing);
    card.memory_bytes = memory.total;
    int major = 0;
    int minor = 0;
    if (call_.capability != nullptr && call_.capability(handle, &major, &minor) == kSuccess)
      card.capability = core::text(major, ".", minor);
    return card;
  }

 private:
  void require(Result result, const std::string& doing) const {
    if (result == kSuccess) return;
    throw core::Error(core::Code::cuda, core::text(doing, ": ", call_.error_string(result)),
                      "run nvidia-smi: it shows whether the driver works");
  }

  std::unique_ptr<Library> library_;
  Functions call_;
};

NvmlOpened open_one(const std::string& name) {
  auto library = std::make_unique<Library>(name);
  if (!library->is_open()) return {.why_not = core::text("no ", name, " (no NVIDIA driver here)")};
  Functions functions{};
  if (!functions.load(*library))
    return {.why_not = core::text(name, " lacks functions of NVML: driver older than 2019?")};
  if (const Result result = functions.init(); result != kSuccess) {
    return {.why_not = core::text(name, ": ", functions.error_string(result))};
  }
  return {.nvml = std::make_unique<DriverNvml>(std::move(library), functions)};
}

}  // namespace

NvmlOpened open_nvml(const std::string& library) {
  if (!library.empty()) return open_one(library);
  NvmlOpened usual = open_one("libnvidia-ml.so.1");
  if (usual.nvml) return usual;
  NvmlOpened wsl =
      open_one("/usr/lib/wsl/lib/libnvidia-ml.so.1");  // Windows keeps its driver's libraries there
  return wsl.nvml ? std::move(wsl) : std::move(usual);
}

}  // namespace yoke::device
