#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "yoke/archive/value.hpp"

namespace yoke::archive {

/// Writes what Python's `torch.load(path, weights_only=True)` reads, whole or not at all.
/// docs/archive.md gives the layout.
///
///   write_pytorch("state_dict.pt", state_dict(tensors));
///
/// Aliases: tensors that reach the same bytes of memory in the same dtype (tied weights, a matrix
///   and its transpose) share one storage in the file too. A view is cut to the bytes from its
///   first to its last element, so a slice of a large tensor takes its own bytes only; views that
///   overlap in part no longer do once loaded. A view with holes (every second column) is written
///   row-major.
/// Equal input gives equal bytes, whatever the path.
/// Errors: invalid_argument for text that is not UTF-8, a key that is no string, number, bool or
///   None or is there twice, an unsound view, or more than 100 levels; io as AtomicFile, with the
///   size that was needed; an older file stays untouched then.
/// Cost: one pass over the bytes with CRC-32; memory for the pickle and a line per tensor, not for
///   their bytes.
void write_pytorch(const std::filesystem::path& path, const Value& value);

/// Reads what Python's torch.save has written (since PyTorch 1.6) or write_pytorch: nothing in it
/// is executed.
///
/// Maps the file; the tensors keep it mapped and point into it (a storage that lies misaligned is
/// copied). Parameters become tensors, torch.Size a tuple, a set a list, a device or dtype its
/// name; an OrderedDict's `_metadata` is dropped.
/// Errors: not_found, io; corrupt_data with path, size and what was found for a file that is cut
///   short, damaged (CRC-32 of every record read) or something else; unsupported for a class that
///   is not plain data, with its module and name, for a dtype that archive::Dtype lacks, for a
///   TorchScript file, and for the format before PyTorch 1.6.
/// Cost: one pass over the bytes for the CRC-32; memory for the value only.
[[nodiscard]] Value read_pytorch(const std::filesystem::path& path);

/// The same from memory, which is copied from; `name` stands in errors.
[[nodiscard]] Value read_pytorch(std::span<const std::byte> bytes, std::string_view name);

}  // namespace yoke::archive
