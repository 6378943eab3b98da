#pragma once

#include <cstddef>
#include <vector>

#include "yoke/feed/image.hpp"

namespace yoke::feed {

struct JpegOptions {
  int quality = 90;  ///< 1 to 100
};

/// The image as a baseline JPEG with one chroma sample to four pixels, Pillow's default, and
/// Huffman tables made for it. Errors: invalid_argument for a quality outside; unsupported for a
/// side above 65,500 pixels.
[[nodiscard]] std::vector<std::byte> encode_jpeg(const Image& image,
                                                 const JpegOptions& options = {});

}  // namespace yoke::feed
