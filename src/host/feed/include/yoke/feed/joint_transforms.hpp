#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "yoke/feed/image.hpp"
#include "yoke/feed/transforms.hpp"

namespace yoke::feed {

/// A rectangle around something in an image, in pixels from its left upper corner: torchvision's
/// format "xyxy". Sides may lie between pixels.
struct Box {
  float left = 0;
  float top = 0;
  float right = 0;
  float bottom = 0;

  friend bool operator==(const Box&, const Box&) = default;
};

/// A number for each pixel of an image: the class of what is there.
struct Mask {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> values{};  ///< row after row
};

/// What is transformed together: an image, and what is said of its places.
struct Annotated {
  Image image{};
  std::optional<Mask> mask{};  ///< of the image's size
  std::vector<Box> boxes{};
  std::vector<std::int64_t> labels{};  ///< of the boxes
};

struct JointOptions {
  std::uint8_t mask_fill = 0;  ///< where padding is, or what is no class ("ignore": 255)
  float least_side = 1;        ///< boxes with less of a side left inside are dropped, labels too
};

/// Transforms of images with masks and boxes, for segmentation and detection: the geometry of
/// transforms::Resize, CenterCrop, RandomResizedCrop, RandomCrop and the flips, on all of them with
/// the same chances; ColorJitter on the image alone.
///
///   const JointTransforms joint({transforms::RandomResizedCrop(320),
///                                transforms::RandomHorizontalFlip()});
///   joint.apply(annotated, Draws({.seed = 7, .epoch = 3, .index = 41}));
///
/// The image becomes what Transforms makes of it. A mask takes the nearest pixel's value, as
/// torchvision's v2 does; a box is cut to what is left of the image.
///
/// Threads: any (immutable).
/// Errors: the constructor: those of Transforms, and unsupported for RandAugment and Normalize.
///   apply(): invalid_argument for a mask of another size than the image and for as many labels as
///   there are not boxes.
class JointTransforms {
 public:
  explicit JointTransforms(std::vector<transforms::Step> steps, JointOptions options = {});

  void apply(Annotated& annotated, Draws draws) const;

 private:
  std::vector<transforms::Step> steps_;
  JointOptions options_;
};

}  // namespace yoke::feed
