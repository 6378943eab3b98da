#pragma once

#include <optional>

#include "yoke/feed/transforms.hpp"

namespace yoke::feed {

/// Pixels to add on each side.
struct Padding {
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;
};

/// An image on its way through transforms. Crops, one resize and flips are only noted; pixels()
/// does them at once, with as little of the file decoded as it takes.
///
/// Borrows the workspace, whose decoder has the image open.
class LazyImage {
 public:
  LazyImage(const ImageFacts& facts, TransformWorkspace& workspace);
  LazyImage(const LazyImage&) = delete;
  LazyImage& operator=(const LazyImage&) = delete;

  [[nodiscard]] int width() const noexcept { return seen().width; }
  [[nodiscard]] int height() const noexcept { return seen().height; }

  /// Requires: a region inside the image.
  void crop(const Region& region);

  void resize(int width, int height, Interpolation interpolation);
  void mirror() noexcept { mirrored_ = !mirrored_; }
  void turn_upside_down();

  /// Puts the image on black.
  void pad(const Padding& padding);

  /// All that was put off is done, but for mirroring: see mirrored(). The caller may change the
  /// pixels.
  Image& pixels();

  /// The same, and mirroring is done too. `spare`: memory that the caller may use.
  struct Settled {
    Image& pixels;
    Image& spare;
  };
  Settled settled();

  /// What the caller has made in `spare` of settled(), of the same size, becomes the image.
  void take_spare();

  /// Whether the rows of pixels() still run from right to left.
  [[nodiscard]] bool mirrored() const noexcept { return mirrored_; }

 private:
  [[nodiscard]] const Region& seen() const noexcept { return target_ ? target_->window : region_; }
  void materialise();
  void mirror_now();

  TransformWorkspace& workspace_;
  bool loaded_ = false;  // else the pixels are in the file still
  Region region_;        // of the file, or of workspace_.made
  std::optional<Resizer::Target> target_;
  bool mirrored_ = false;
};

}  // namespace yoke::feed
