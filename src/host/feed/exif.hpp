#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "yoke/feed/image.hpp"

namespace yoke::feed {

/// The orientation, 1 to 8, that stands in a JPEG's APP1 segment or a PNG's eXIf chunk; nothing
/// where there is none, or one that cannot be read.
[[nodiscard]] std::optional<int> exif_orientation(std::span<const std::byte> segment) noexcept;

/// Whether the orientation exchanges width and height.
[[nodiscard]] constexpr bool is_transposed(int orientation) noexcept { return orientation >= 5; }

/// Where `region` of the upright image lies in the stored one of this size.
[[nodiscard]] Region stored_region(const Region& region, int orientation, int stored_width,
                                   int stored_height) noexcept;

/// `stored`'s part `region`, turned upright.
[[nodiscard]] Image upright(const Image& stored, const Region& region, int orientation);

}  // namespace yoke::feed
