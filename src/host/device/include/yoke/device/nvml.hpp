#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace yoke::device {

/// A card as the driver sees it. `index` is NVML's: the order of PCI buses, which is CUDA's own
/// order only under CUDA_DEVICE_ORDER=PCI_BUS_ID. The UUID is the same everywhere.
struct Card {
  int index = 0;
  std::string uuid{};    ///< "GPU-" and 36 characters
  std::string name{};    ///< "NVIDIA H200"
  std::string bus_id{};  ///< "00000000:1B:00.0"
  std::uint64_t memory_bytes = 0;
  std::string capability{};  ///< "9.0"; empty: the driver does not tell
};

/// The management library of NVIDIA's driver, as far as Yoke uses it. FakeNvml stands in for it in
/// tests.
///
/// Threads: any.
/// Errors: cuda, with the card and the driver's words ("GPU is lost").
class Nvml {
 public:
  Nvml() = default;
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  virtual ~Nvml() = default;

  /// Cards in this machine or container, whatever CUDA_VISIBLE_DEVICES says.
  [[nodiscard]] virtual int count() const = 0;

  [[nodiscard]] virtual Card card(int index) const = 0;
};

struct NvmlOpened {
  std::unique_ptr<Nvml> nvml{};  ///< null: there is none that works
  std::string why_not{};  ///< then: the reason, e.g. "no libnvidia-ml.so.1 (no NVIDIA driver here)"
};

/// Opens NVML by dlopen: `library`, else the driver's usual names. A machine without a card is an
/// expected outcome, not an error. Cost: 5 to 50 ms where there is a driver; the library is closed
/// with the object.
[[nodiscard]] NvmlOpened open_nvml(const std::string& library = {});

}  // namespace yoke::device
