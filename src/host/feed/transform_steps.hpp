#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "augment.hpp"
#include "color.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/feed/transforms.hpp"

/// What each step does, to anything that can be cropped, resized, mirrored, turned upside down and
/// padded: a LazyImage, or an image with its mask and boxes. The chances that a step takes are here
/// and nowhere else, so both take the same.
namespace yoke::feed::steps {

using namespace transforms;

// Python's round(): halves go to the even neighbour.
inline int rounded(double value) { return static_cast<int>(std::nearbyint(value)); }

inline double between(const Interval& interval, Draws& draws) {
  return interval.low + (interval.high - interval.low) * draws.uniform();
}

inline int up_to(int last, Draws& draws) {
  return static_cast<int>(draws.below(static_cast<std::uint64_t>(last) + 1));
}

template <class Crop>
int width_of(const Crop& crop) {
  return crop.width > 0 ? crop.width : crop.height;
}

template <class Picture>
void apply(const Resize& step, Picture& image, Draws& /*draws*/) {
  int width = step.width;
  int height = step.size;
  if (width == 0) {
    const auto longer = [&](int wide, int narrow) {
      return static_cast<int>(static_cast<std::int64_t>(step.size) * wide / narrow);
    };
    const bool upright = image.width() <= image.height();
    width = upright ? step.size : longer(image.width(), image.height());
    height = upright ? longer(image.height(), image.width()) : step.size;
  }
  if (width != image.width() || height != image.height()) {
    image.resize(width, height, step.interpolation);
  }
}

template <class Picture>
void apply(const CenterCrop& step, Picture& image, Draws& /*draws*/) {
  const int width = width_of(step);
  const int height = step.height;
  const int columns = std::max(0, width - image.width());
  const int rows = std::max(0, height - image.height());
  if (columns + rows > 0) {
    image.pad({columns / 2, rows / 2, (columns + 1) / 2, (rows + 1) / 2});
  }
  image.crop({rounded((image.width() - width) / 2.0), rounded((image.height() - height) / 2.0),
              width, height});
}

template <class Picture>
void apply(const RandomResizedCrop& step, Picture& image, Draws& draws) {
  image.crop(crop_box(step, image.width(), image.height(), draws));
  image.resize(width_of(step), step.height, step.interpolation);
}

template <class Picture>
void apply(const RandomCrop& step, Picture& image, Draws& draws) {
  if (step.padding > 0) image.pad({step.padding, step.padding, step.padding, step.padding});
  const int width = width_of(step);
  if (width > image.width() || step.height > image.height()) {
    throw Error(Code::invalid_argument,
                core::text("crop ", width, " x ", step.height, " pixels out of an image of ",
                           image.width(), " x ", image.height()),
                "resize first, or pad");
  }
  const int top = up_to(image.height() - step.height, draws);
  const int left = up_to(image.width() - width, draws);
  image.crop({left, top, width, step.height});
}

template <class Picture>
void apply(const RandomHorizontalFlip& step, Picture& image, Draws& draws) {
  if (draws.uniform() < step.p) image.mirror();
}

template <class Picture>
void apply(const RandomVerticalFlip& step, Picture& image, Draws& draws) {
  if (draws.uniform() < step.p) image.turn_upside_down();
}

template <class Picture>
void apply(const ColorJitter& step, Picture& image, Draws& draws) {
  using Adjust = void (*)(Image&, double);
  struct Change {
    Adjust adjust;
    std::optional<double> factor;
  };
  const auto drawn = [&](const std::optional<Interval>& interval) {
    return interval ? std::optional(between(*interval, draws)) : std::nullopt;
  };
  std::array<std::size_t, 4> order{0, 1, 2, 3};
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[draws.below(i)]);
  std::array<Change, 4> changes{};
  changes[0] = {adjust_brightness, drawn(step.brightness)};
  changes[1] = {adjust_contrast, drawn(step.contrast)};
  changes[2] = {adjust_saturation, drawn(step.saturation)};
  changes[3] = {adjust_hue, drawn(step.hue)};
  for (const std::size_t i : order) {
    const Change& change = changes[i];
    if (change.factor) change.adjust(image.pixels(), *change.factor);
  }
}

// The step's place between two ends, in torch.linspace()'s arithmetic.
inline double strength(const RandAugment& step, float begin, float end) {
  const int last = step.num_magnitude_bins - 1;
  const float one = (end - begin) / static_cast<float>(last);
  const bool in_first_half = step.magnitude < step.num_magnitude_bins / 2;
  return in_first_half ? begin + one * static_cast<float>(step.magnitude)
                       : end - one * static_cast<float>(last - step.magnitude);
}

// What RandAugment may do, in torchvision's order.
enum class Change {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  color,
  contrast,
  sharpness,
  posterize,
  solarize,
  autocontrast,
  equalize,
};
constexpr std::uint64_t kChanges = 14;

inline bool has_sign(Change change) {
  return change >= Change::shear_x && change <= Change::sharpness;
}

template <class Picture>
void augment_once(const RandAugment& step, Picture& image, Draws& draws) {
  const auto change = static_cast<Change>(draws.below(kChanges));
  const double sign = has_sign(change) && draws.below(2) == 1 ? -1 : 1;
  const auto settled = image.settled();
  Image& pixels = settled.pixels;
  const auto warped = [&](const AffineMatrix& matrix) {
    warp(pixels, matrix, settled.spare);
    image.take_spare();
  };
  const auto pixels_of = [&](int side) {  // to go; whole ones
    const auto most = static_cast<float>(150.0 / 331.0 * side);
    return static_cast<int>(sign * strength(step, 0, most));
  };
  const double factor = 1 + sign * strength(step, 0, 0.9F);
  switch (change) {
    case Change::identity: break;
    case Change::shear_x: return warped(shear_matrix(sign * strength(step, 0, 0.3F), 0));
    case Change::shear_y: return warped(shear_matrix(0, sign * strength(step, 0, 0.3F)));
    case Change::translate_x: return warped(translate_matrix(pixels_of(pixels.width()), 0));
    case Change::translate_y: return warped(translate_matrix(0, pixels_of(pixels.height())));
    case Change::rotate:
      return warped(rotate_matrix(sign * strength(step, 0, 30), pixels.width(), pixels.height()));
    case Change::brightness: return adjust_brightness(pixels, factor);
    case Change::color: return adjust_saturation(pixels, factor);
    case Change::contrast: return adjust_contrast(pixels, factor);
    case Change::sharpness: return adjust_sharpness(pixels, factor, settled.spare);
    case Change::posterize:
      return posterize(pixels, 8 - rounded(step.magnitude / ((step.num_magnitude_bins - 1) / 4.0)));
    case Change::solarize: return solarize(pixels, strength(step, 255, 0));
    case Change::autocontrast: return autocontrast(pixels);
    case Change::equalize: return equalize(pixels);
  }
}

template <class Picture>
void apply(const RandAugment& step, Picture& image, Draws& draws) {
  for (int i = 0; i < step.num_ops; ++i) augment_once(step, image, draws);
}

template <class Picture>
void apply(const Normalize& /*step*/, Picture& /*image*/, Draws& /*draws*/) {}

}  // namespace yoke::feed::steps
