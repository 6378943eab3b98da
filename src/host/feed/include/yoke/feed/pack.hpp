#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "yoke/feed/decode.hpp"
#include "yoke/feed/encoded_images.hpp"
#include "yoke/feed/image_rows.hpp"

namespace yoke::feed {

enum class PackFormat { tar, lmdb };

/// "tar" or "lmdb". Errors: invalid_argument with the names known.
[[nodiscard]] PackFormat pack_format_from_name(std::string_view name);

struct PackOptions {
  PackFormat format = PackFormat::tar;
  int short_side = 0;       ///< images with a longer one are made so small; 0: all keep their size
  int quality = 90;         ///< of images that are encoded anew
  Exif exif = Exif::apply;  ///< the packed image has no orientation any more
  std::int64_t shard_samples = 10'000;  ///< tar: of one archive
  unsigned workers = 1;
  bool skip_broken = false;  ///< leave broken images out; else the first one ends packing
  std::function<void(std::int64_t done)> progress{};  ///< from the caller's thread
};

struct PackReport {
  std::int64_t samples = 0;  ///< of the source
  std::int64_t kept = 0;     ///< packed byte for byte
  std::int64_t encoded = 0;  ///< packed as a new JPEG
  std::int64_t resumed = 0;  ///< found packed from a run before
  std::int64_t bytes = 0;
  std::vector<BadSample> broken{};
};

/// Writes images anew for fast training: baseline JPEGs in RGB of the size asked for, as tar shards
/// (pack-00000.tar, ...) or an LMDB, with their labels and the file classes.txt.
///
/// A file that is such a JPEG already is kept byte for byte. Each shard appears whole or not at
/// all, and an LMDB under its name when it is whole: pack again after an interruption and it goes
/// on behind what is there.
///
/// Errors: invalid_argument for a target that holds something else, or a pack of other images or
///   options; io; and a broken image's, with its origin.
PackReport pack(const EncodedImages& images, const std::filesystem::path& target,
                const PackOptions& options = {});

}  // namespace yoke::feed
