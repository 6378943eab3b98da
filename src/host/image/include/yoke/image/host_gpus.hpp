#pragma once

#include <optional>
#include <string>
#include <vector>

#include "yoke/image/tree.hpp"

namespace yoke::image {

/// A slice of a card in MIG mode, with the minor numbers of its capability nodes.
struct MigSlice {
  int gpu_instance = 0;
  int compute_instance = 0;
  unsigned gpu_capability = 0;
  unsigned compute_capability = 0;
};

struct HostGpu {
  int index = 0;  ///< in the order of PCI buses, as NVML counts; not the minor number
  unsigned minor = 0;
  std::string uuid{};
  std::string bus_id{};  ///< "0000:1b:00.0"
  std::string model{};
  std::vector<MigSlice> slices{};
  std::vector<std::string> drm{};  ///< nodes: /dev/dri/card1, /dev/dri/renderD128
};

/// The driver of a machine and its cards, from /proc, /sys and file names alone.
struct HostGpus {
  std::string driver{};  ///< "550.54.14"; empty: there is none
  bool is_wsl = false;   ///< cards behind /dev/dxg
  std::vector<HostGpu> gpus{};
  std::optional<unsigned> capability_major{};  ///< of the nodes nvidia-caps, from /proc/devices

  /// "0:gi1/ci0 0:gi2/ci0": changes when somebody cuts the cards anew.
  [[nodiscard]] std::string mig_layout() const;
};

/// Reads them. Cost: a few dozen small files.
[[nodiscard]] HostGpus host_gpus(const Tree& host);

}  // namespace yoke::image
