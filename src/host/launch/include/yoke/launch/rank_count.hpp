#pragma once

#include <string>
#include <string_view>

namespace yoke::launch {

/// What the machine offers; filled by `machine_resources`, or by a test.
struct MachineResources {
  int gpus{0};               ///< that the ranks can see
  std::string gpu_filter{};  ///< "CUDA_VISIBLE_DEVICES=1,2" if a variable hides some; else empty
  int cores{1};              ///< that this process may use
};

struct RankCount {
  int ranks{1};
  std::string notice{};  ///< one line to say; may be empty
};

/// Reads the number of ranks that the user gave (`option` is what it was called, for messages): a
/// number from 1, `gpu` (one per visible GPU), `cpu` (one per core), `auto` (gpu, else cpu), or
/// nothing (one per visible GPU, else 1). Errors: invalid_argument for another text, quoting it and
/// the allowed forms; unsupported for `gpu` without a GPU
///   and for more ranks than visible GPUs.
[[nodiscard]] RankCount rank_count(std::string_view wanted, const std::string& option,
                                   const MachineResources& machine);

/// Asks this machine, without opening a CUDA context.
[[nodiscard]] MachineResources machine_resources();

}  // namespace yoke::launch
