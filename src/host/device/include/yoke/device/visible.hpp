#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/core/environment.hpp"
#include "yoke/device/nvml.hpp"

namespace yoke::device {

/// What a value of CUDA_VISIBLE_DEVICES selects, read as CUDA reads it.
struct VisibleList {
  /// Places in the machine's list, in CUDA's order; -1 where a card is named by a UUID that cannot
  /// be looked up.
  std::vector<int> indices{};
  std::string ended_by{};  ///< the entry that ended or emptied the list, and why; empty: every
                           ///< entry was taken
  std::vector<std::string> warnings{};  ///< entries that CUDA takes and their author hardly meant
};

/// Reads a value of CUDA_VISIBLE_DEVICES for a machine with `count` cards.
///
///   read_visible_list("0,1,-1,3", 8)  // {0, 1}; ended_by "entry 3 (-1): not an index, so the list
///   ends here"
///
/// `uuids`: those of the cards in order, or empty where they are not known.
/// Errors: invalid_argument for the beginning of a UUID that fits several cards.
[[nodiscard]] VisibleList read_visible_list(std::string_view value, int count,
                                            const std::vector<std::string>& uuids = {});

struct VisibleCards {
  std::vector<Card> cards{};  ///< in the order of their ranks
  std::string ended_by{};     ///< as in VisibleList
  std::vector<std::string> warnings{};
};

/// The cards that CUDA_VISIBLE_DEVICES leaves; all of them where it is not set.
/// Numbers in the variable are taken in NVML's order (see Card).
/// Errors: as read_visible_list, and those of `nvml`.
[[nodiscard]] VisibleCards visible_cards(const core::EnvironmentMap& variables, const Nvml& nvml);

/// How many cards a process with these variables sees, from the device nodes /dev/nvidia0,
/// /dev/nvidia1, ... under `root`. Where a driver is loaded whose nodes do not exist yet, `open` is
/// asked. Cost: one listing of /dev.
[[nodiscard]] int visible_gpu_count(
    const core::EnvironmentMap& variables, const std::filesystem::path& root = "/",
    const std::function<NvmlOpened()>& open = [] { return open_nvml(); });

}  // namespace yoke::device
