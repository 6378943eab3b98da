#pragma once

#include "yoke/feed/image.hpp"

namespace yoke::feed {

/// What Pillow's ImageEnhance does, with its rounding: a mixture of the image and a dull one, of
/// which the factor 0 gives the dull one and 1 the image.
void adjust_brightness(Image& image, double factor);  ///< dull: black
void adjust_contrast(Image& image, double factor);    ///< dull: the mean gray
void adjust_saturation(Image& image, double factor);  ///< dull: its grays

/// The image as a mixture of a dull one of its size and itself, by the same rule.
void mix(Image& image, const Image& dull, double factor);

/// Turns the hue by this part of the circle, -0.5 to 0.5, through Pillow's HSV of three bytes.
void adjust_hue(Image& image, double turn);

}  // namespace yoke::feed
