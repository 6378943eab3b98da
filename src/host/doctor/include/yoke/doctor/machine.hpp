#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "yoke/core/environment.hpp"
#include "yoke/device/nvml.hpp"
#include "yoke/device/visible.hpp"
#include "yoke/stack/stack.hpp"

namespace yoke::doctor {

/// Where the doctor looks. A test gives a folder of its own and a FakeNvml.
struct Sources {
  std::filesystem::path root = "/";
  core::EnvironmentMap variables{};
  std::function<device::NvmlOpened()> open_nvml{};
  const stack::Matrix* matrix = nullptr;  ///< null: the built-in one
};

/// The driver as /proc, /sys, /dev and the folders of libraries show it.
struct DriverFacts {
  std::optional<stack::Version> module{};         ///< the loaded kernel module
  std::optional<stack::Version> library{};        ///< libcuda.so.1 that a program would load
  std::filesystem::path library_file{};           ///< empty: there is none
  int pci_cards = 0;                              ///< NVIDIA's display controllers on the bus
  int card_nodes = 0;                             ///< /dev/nvidia0, ...
  bool control_node = false;                      ///< /dev/nvidiactl
  bool memory_node = false;                       ///< /dev/nvidia-uvm
  bool nouveau = false;                           ///< the free driver has the cards
  bool wsl = false;                               ///< /dev/dxg
  bool switches = false;                          ///< NVSwitch on the bus: needs the fabric manager
  std::optional<std::filesystem::path> compat{};  ///< libcuda of a package cuda-compat

  [[nodiscard]] bool any() const noexcept {
    return module || card_nodes > 0 || pci_cards > 0 || wsl;
  }
};

struct CardsFacts {
  std::vector<device::Card> all{};
  std::string why_not{};           ///< empty: NVML answered
  device::VisibleCards visible{};  ///< what CUDA_VISIBLE_DEVICES leaves
  std::string variable_error{};    ///< why the variable cannot be read; empty: it can
};

/// What the doctor knows of a machine. Each part is read once, when it is first asked for.
///
/// Threads: any. A part that another thread still waits for is Error timeout at once.
class Machine {
 public:
  explicit Machine(Sources sources);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  [[nodiscard]] const std::filesystem::path& root() const noexcept { return sources_.root; }
  [[nodiscard]] const core::EnvironmentMap& variables() const noexcept {
    return sources_.variables;
  }
  [[nodiscard]] const stack::Matrix& matrix() const noexcept { return *sources_.matrix; }

  [[nodiscard]] const DriverFacts& driver() const;
  [[nodiscard]] const CardsFacts& cards() const;
  [[nodiscard]] const stack::Inventory& installed() const;
  [[nodiscard]] const stack::TorchLibraries& torch_libraries() const;  ///< of installed().torch()

  /// A card as verdicts need it: by what the driver tells, else by its name.
  [[nodiscard]] stack::CardFacts facts_of(const device::Card& card) const;

  /// The path of the machine below root().
  [[nodiscard]] std::filesystem::path at(const std::filesystem::path& path) const;

  /// A file's text; nothing where it cannot be read.
  [[nodiscard]] std::optional<std::string> text_of(const std::filesystem::path& path) const;

 private:
  struct State;
  Sources sources_;
  std::unique_ptr<State> state_;
};

/// The folders of LD_LIBRARY_PATH, or empty.
[[nodiscard]] std::string ld_library_path(const Machine& machine);

}  // namespace yoke::doctor
