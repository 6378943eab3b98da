#pragma once

#include <array>

#include "yoke/feed/image.hpp"

namespace yoke::feed {

/// Where the pixel (x, y) of a result comes from: (m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5]).
using AffineMatrix = std::array<double, 6>;

[[nodiscard]] AffineMatrix shear_matrix(double along_x, double along_y);  ///< about the corner
[[nodiscard]] AffineMatrix translate_matrix(double right, double down);
[[nodiscard]] AffineMatrix rotate_matrix(double degrees, int width, int height);  ///< anticlockwise

/// Pillow's Image.transform(AFFINE, NEAREST) to the same size; black from outside.
void warp(const Image& image, const AffineMatrix& matrix, Image& out);

/// Pillow's ImageEnhance.Sharpness: a mixture of the image and a smoothed one. `spare`: memory.
void adjust_sharpness(Image& image, double factor, Image& spare);

/// Pillow's ImageOps of these names.
void posterize(Image& image, int bits);
void solarize(Image& image, double threshold);
void autocontrast(Image& image);
void equalize(Image& image);

}  // namespace yoke::feed
