#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/archive/tensor.hpp"

namespace yoke::archive {

/// How the names of a run's checkpoints begin: sealed folders in its folder `checkpoints`.
inline constexpr std::string_view kCheckpointPrefix = "step-";

/// A model's weights, whoever saved them.
struct Weights {
  std::vector<NamedTensor> tensors{};
  std::string format{};              ///< "safetensors", "state_dict of PyTorch", ...
  std::vector<std::string> notes{};  ///< what of the file was taken, and what was left
};

/// Reads safetensors; what torch.save wrote of a state_dict, or of a dict that holds one under
/// "state_dict" (Lightning), "model_state_dict", "model" or "module"; a checkpoint folder of Yoke;
/// a run folder (its final weights, else its newest whole checkpoint).
///
/// Errors: not_found; corrupt_data and unsupported as read_safetensors(), read_pytorch() and
///   verify(); invalid_argument for a folder that is none of these.
[[nodiscard]] Weights read_weights(const std::filesystem::path& path);

/// Takes off what wrappers put before names: `module.` (DataParallel, DDP), `_orig_mod.`
/// (torch.compile, also within a name) and `model.` (a Lightning module's field), again and again
/// while every name has it. Returns what was taken, in order.
/// Errors: invalid_argument where two names become one.
std::vector<std::string> strip_prefixes(std::vector<NamedTensor>& tensors);

/// The mean of each tensor over several states, summed in float64; of integers and bools the last
/// state's. Dtypes are those of the first state.
/// Errors: invalid_argument, naming the first tensor that one of them lacks or has in another
/// shape.
[[nodiscard]] std::vector<NamedTensor> average(std::span<const Weights> states);

}  // namespace yoke::archive
