#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "yoke/feed/decode.hpp"
#include "yoke/feed/image.hpp"
#include "yoke/feed/random.hpp"
#include "yoke/feed/resize.hpp"

/// torchvision's transforms under their names, with their options and defaults: what they do to a
/// Pillow image is what these do. docs/feed.md says which random numbers each takes.
namespace yoke::feed::transforms {

/// The short side becomes `size`, or with `width` the image `size` high and so wide.
struct Resize {
  int size = 256;
  int width = 0;
  Interpolation interpolation = Interpolation::bilinear;
};

/// The middle; black where the image is smaller.
struct CenterCrop {
  int height = 224;
  int width = 0;  ///< 0: as high
};

struct Interval {
  double low = 0;
  double high = 0;
};

/// A part of random area and shape, resized.
struct RandomResizedCrop {
  int height = 224;
  int width = 0;  ///< 0: as high
  Interval scale{0.08, 1.0};
  Interval ratio{3.0 / 4.0, 4.0 / 3.0};
  Interpolation interpolation = Interpolation::bilinear;
};

/// A part of this size at a random place, after `padding` black pixels on every side.
struct RandomCrop {
  int height = 32;
  int width = 0;  ///< 0: as high
  int padding = 0;
};

struct RandomHorizontalFlip {
  double p = 0.5;
};

struct RandomVerticalFlip {
  double p = 0.5;
};

/// Factors of brightness, contrast and saturation, and a turn of the hue in parts of the circle,
/// in random order. ColorJitter{.brightness = around_one(0.4)} is torchvision's brightness=0.4.
struct ColorJitter {
  std::optional<Interval> brightness{};
  std::optional<Interval> contrast{};
  std::optional<Interval> saturation{};
  std::optional<Interval> hue{};
};
[[nodiscard]] constexpr Interval around_one(double by) { return {by < 1 ? 1 - by : 0, 1 + by}; }

/// `num_ops` of fourteen changes of shape and colour, each by lot, of strength `magnitude` of
/// num_magnitude_bins; nearest pixels, black from outside.
struct RandAugment {
  int num_ops = 2;
  int magnitude = 9;
  int num_magnitude_bins = 31;
};

/// Into float: (value / 255 - mean) / std of each channel. The last step if there is one.
struct Normalize {
  std::array<float, 3> mean{0.485F, 0.456F, 0.406F};
  std::array<float, 3> std{0.229F, 0.224F, 0.225F};
};

using Step = std::variant<Resize, CenterCrop, RandomResizedCrop, RandomCrop, RandomHorizontalFlip,
                          RandomVerticalFlip, ColorJitter, RandAugment, Normalize>;

/// The box that RandomResizedCrop takes out of an image of this size.
[[nodiscard]] Region crop_box(const RandomResizedCrop& crop, int width, int height, Draws& draws);

}  // namespace yoke::feed::transforms

namespace yoke::feed {

enum class PixelLayout {
  hwc,  ///< [height, width, 3]
  chw,  ///< [3, height, width]
};

struct TransformWorkspace;

/// From an image's file to the pixels of a batch's row.
///
///   const Transforms transforms({transforms::RandomResizedCrop{224},
///                                transforms::RandomHorizontalFlip{}});
///   TransformWorkspace workspace;
///   Draws draws({.seed = 7, .epoch = 3, .index = 41});
///   transforms.apply(file_bytes, draws, workspace, row);  // 224 x 224 x 3 bytes
///
/// Geometry is put off until pixels are needed: of a JPEG only the part is decoded that the result
/// depends on. The result is that of step after step.
///
/// Threads: any (immutable); a workspace belongs to one thread at a time.
/// Errors: the constructor: invalid_argument for options that cannot be, for a step behind
///   Normalize, and where the steps leave the size open. apply(): those of ImageDecoder, and
///   invalid_argument for a RandomCrop larger than the image.
class Transforms {
 public:
  explicit Transforms(std::vector<transforms::Step> steps, PixelLayout layout = PixelLayout::hwc);

  [[nodiscard]] int width() const noexcept { return width_; }
  [[nodiscard]] int height() const noexcept { return height_; }
  [[nodiscard]] PixelLayout layout() const noexcept { return layout_; }

  /// Whether the result is 32-bit floats; else bytes.
  [[nodiscard]] bool gives_floats() const noexcept { return normalize_.has_value(); }

  /// Of one result.
  [[nodiscard]] std::size_t bytes() const noexcept;

  /// Requires: row.size() == bytes(), and for floats a row on their boundary.
  void apply(std::span<const std::byte> file, Draws& draws, TransformWorkspace& workspace,
             std::span<std::byte> row) const;

 private:
  std::vector<transforms::Step> steps_;
  std::optional<transforms::Normalize> normalize_;
  PixelLayout layout_;
  int width_ = 0;
  int height_ = 0;
};

/// What a thread needs to transform images, kept from one to the next.
struct TransformWorkspace {
  explicit TransformWorkspace(DecodeOptions options = {}) : decoder(options) {}

  ImageDecoder decoder;
  Resizer resizer;
  Image decoded;
  Image made;
  Image spare;
};

}  // namespace yoke::feed
