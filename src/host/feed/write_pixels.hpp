#pragma once

#include <cstddef>
#include <span>

#include "yoke/feed/transforms.hpp"

namespace yoke::feed {

/// Writes an image as three bytes a pixel; `mirrored`: from right to left.
void write_bytes(const Image& image, bool mirrored, PixelLayout layout, std::span<std::byte> out);

/// The same as floats.
void write_floats(const Image& image, bool mirrored, PixelLayout layout,
                  const transforms::Normalize& normalize, std::span<float> out);

}  // namespace yoke::feed
