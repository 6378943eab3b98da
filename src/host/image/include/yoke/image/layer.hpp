#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "yoke/image/lint.hpp"

namespace yoke::image {

/// A file of an image's layer, as the layer's tar names it.
struct LayerEntry {
  std::string path{};  ///< without a leading / or ./
  char kind = '0';     ///< tar's letter: '0' file, '1' hard link, '2' link, '5' folder
  std::uint64_t size = 0;
  std::string target{};   ///< of a link
  std::int64_t time = 0;  ///< seconds since 1970
};

/// The entries of a layer, plain or gzip; ustar, GNU and pax names. File contents are skipped.
/// Errors: not_found, io; corrupt_data with the file and the place for one that is no tar;
///   unsupported for zstd.
[[nodiscard]] std::vector<LayerEntry> read_layer(const std::filesystem::path& file);

/// The text of a file in a layer, 1 MiB at most; nothing where the layer has none of that path.
/// Errors: as read_layer.
[[nodiscard]] std::optional<std::string> read_from_layer(const std::filesystem::path& file,
                                                         const std::string& path);

struct LayerFault {
  Severity severity = Severity::error;
  std::string path{};
  std::string reason{};
};

/// What must not be in a layer: empty driver files, which an image gets that is built under a GPU
/// runtime and which then stand in the driver's way; whole copies of the driver; links to either.
[[nodiscard]] std::vector<LayerFault> check_layer(const std::vector<LayerEntry>& entries);

/// The layers of an OCI layout in their order, or the one layer that a file is.
/// Errors: as open_image.
[[nodiscard]] std::vector<std::filesystem::path> layer_files(const std::filesystem::path& path);

}  // namespace yoke::image
