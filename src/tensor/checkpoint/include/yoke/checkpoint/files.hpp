#pragma once

#include <filesystem>

#include "yoke/archive/value.hpp"
#include "yoke/checkpoint/state_dict.hpp"

namespace yoke::checkpoint {

/// Writes the tensors in the format that the name's end asks for: `.pt` and `.pth` for what
/// Python's `torch.load(weights_only=True)` reads as an OrderedDict, `.safetensors` for that format
/// (without aliases: tied weights are written twice). Whole or not at all.
///
///   save_state_dict("model.safetensors", state_dict(*model));
///
/// Devices: any; what is not on the CPU is copied there.
/// Errors: invalid_argument for another end of the name, a name that is there twice, an undefined
///   tensor; unsupported as ToArchive; io, with the size that was needed; an older file stays
///   untouched then.
void save_state_dict(const std::filesystem::path& path, const StateDict& state);

/// The tensors of such a file, of Python or ours, on the CPU. A `.pt` gives them in the order of
/// the file; where the state_dict lies inside a dict, under "state_dict", "model_state_dict" or
/// "model", that one is taken.
///
/// Owns: the tensors keep the file mapped and point into it; they may be written without changing
///   it.
/// Errors: not_found, io, corrupt_data and unsupported as archive::read_pytorch and
///   read_safetensors.
[[nodiscard]] StateDict load_state_dict(const std::filesystem::path& path);

/// Writes plain data with tensors (made by ToArchive) for Python's `torch.load(weights_only=True)`,
/// e.g. an optimizer's state.
/// Errors: as archive::write_pytorch.
void save_value(const std::filesystem::path& path, const archive::Value& value);

/// Reads such a file; FromArchive turns its tensors.
/// Errors: as archive::read_pytorch.
[[nodiscard]] archive::Value load_value(const std::filesystem::path& path);

}  // namespace yoke::checkpoint
