#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/archive/tensor.hpp"

namespace yoke::archive {

struct Safetensors {
  std::vector<NamedTensor> tensors{};  ///< row-major, in the order of their bytes in the file
  std::map<std::string, std::string> metadata{};  ///< the header's `__metadata__`
};

/// Writes a safetensors file, whole or not at all. docs/archive.md gives the layout.
///
///   write_safetensors("model.safetensors", tensors, {{"format", "pt"}});
///
/// Shapes: any; a view that is not contiguous is written row-major through a buffer of 1 MiB; a
///   storage that two tensors share is written twice, since the format has no aliases.
/// Order: by falling element size, else as given. The same tensors give the same bytes.
/// Errors: invalid_argument for a name that is there twice, reserved or not UTF-8, or for an
/// unsound
///   view; io as AtomicFile, with the size that was needed; an older file stays untouched then.
/// Cost: one pass over the bytes; memory for the header only.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// Maps the file; the tensors keep it mapped and point into it (a tensor that lies misaligned is
/// copied).
///
/// Errors: not_found, io; corrupt_data with path and size for whatever is not sound: header beyond
///   the file, JSON, an offset out of bounds, overlaps, holes, a size that does not fit the shape;
///   unsupported for a dtype that archive::Dtype lacks, by name.
[[nodiscard]] Safetensors read_safetensors(const std::filesystem::path& path);

/// The same from memory, which is copied from; `name` stands in errors.
[[nodiscard]] Safetensors read_safetensors(std::span<const std::byte> bytes, std::string_view name);

}  // namespace yoke::archive
