#include "yoke/feed/joint_transforms.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lazy_image.hpp"
#include "transform_steps.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/feed/resize.hpp"

namespace yoke::feed {
namespace {

// Pixels of an image, or values of a mask, as rows of items of so many bytes.
struct Plane {
  std::uint8_t* bytes;
  int width;
  int height;
  std::ptrdiff_t item;

  [[nodiscard]] std::uint8_t* at(int x, int y) const {
    return bytes + (std::ptrdiff_t{y} * width + x) * item;
  }
};

Plane plane_of(Image& image) {
  return {image.row(0), image.width(), image.height(), Image::kPixelBytes};
}
Plane plane_of(Mask& mask) { return {mask.values.data(), mask.width, mask.height, 1}; }

Image like(const Image& /*image*/, int width, int height) { return {width, height}; }
Mask like(const Mask& /*mask*/, int width, int height) {
  return {width, height,
          std::vector<std::uint8_t>(static_cast<std::size_t>(width) *
                                    static_cast<std::size_t>(height))};
}

void copy_rows(const Plane& from, const Region& region, const Plane& to, int left, int top) {
  for (int y = 0; y < region.height; ++y) {
    std::memcpy(to.at(left, top + y), from.at(region.left, region.top + y),
                static_cast<std::size_t>(region.width * from.item));
  }
}

template <class Kind>
void crop_it(Kind& kind, const Region& region) {
  Kind part = like(kind, region.width, region.height);
  copy_rows(plane_of(kind), region, plane_of(part), 0, 0);
  kind = std::move(part);
}

template <class Kind>
void pad_it(Kind& kind, const Padding& padding, std::uint8_t fill) {
  const Plane from = plane_of(kind);
  Kind padded = like(kind, from.width + padding.left + padding.right,
                     from.height + padding.top + padding.bottom);
  const Plane to = plane_of(padded);
  std::memset(to.bytes, fill, static_cast<std::size_t>(to.width * to.height * to.item));
  copy_rows(from, {0, 0, from.width, from.height}, to, padding.left, padding.top);
  kind = std::move(padded);
}

template <class Kind>
void mirror_it(Kind& kind) {
  const Plane plane = plane_of(kind);
  for (int y = 0; y < plane.height; ++y) {
    for (int x = 0; x < plane.width / 2; ++x) {
      std::swap_ranges(plane.at(x, y), plane.at(x, y) + plane.item,
                       plane.at(plane.width - 1 - x, y));
    }
  }
}

template <class Kind>
void turn_it(Kind& kind) {
  const Plane plane = plane_of(kind);
  for (int y = 0; y < plane.height / 2; ++y) {
    std::swap_ranges(plane.at(0, y), plane.at(0, y + 1), plane.at(0, plane.height - 1 - y));
  }
}

// The value of the pixel in whose area the result's middle lies.
Mask resized(Mask& mask, int width, int height) {
  Mask result = like(mask, width, height);
  const Plane from = plane_of(mask);
  const Plane to = plane_of(result);
  const double columns = static_cast<double>(mask.width) / width;
  const double rows = static_cast<double>(mask.height) / height;
  for (int y = 0; y < height; ++y) {
    const int row = std::min(mask.height - 1, static_cast<int>((y + 0.5) * rows));
    for (int x = 0; x < width; ++x) {
      const int column = std::min(mask.width - 1, static_cast<int>((x + 0.5) * columns));
      *to.at(x, y) = *from.at(column, row);
    }
  }
  return result;
}

// What the steps act on: all of it at once.
class Together {
 public:
  Together(Annotated& annotated, const JointOptions& options)
      : annotated_(annotated), options_(options) {}

  [[nodiscard]] int width() const noexcept { return annotated_.image.width(); }
  [[nodiscard]] int height() const noexcept { return annotated_.image.height(); }

  void crop(const Region& region) {
    crop_it(annotated_.image, region);
    if (annotated_.mask) crop_it(*annotated_.mask, region);
    const auto width = static_cast<float>(region.width);
    const auto height = static_cast<float>(region.height);
    shift(-region.left, -region.top);
    for (Box& box : annotated_.boxes) {
      box = {std::clamp(box.left, 0.0F, width), std::clamp(box.top, 0.0F, height),
             std::clamp(box.right, 0.0F, width), std::clamp(box.bottom, 0.0F, height)};
    }
  }

  void resize(int width, int height, Interpolation interpolation) {
    const float columns = static_cast<float>(width) / static_cast<float>(this->width());
    const float rows = static_cast<float>(height) / static_cast<float>(this->height());
    Image result;
    resizer_.resize(annotated_.image, annotated_.image.whole(),
                    {.width = width, .height = height, .interpolation = interpolation}, result);
    annotated_.image = std::move(result);
    if (annotated_.mask) annotated_.mask = resized(*annotated_.mask, width, height);
    for (Box& box : annotated_.boxes)
      box = {box.left * columns, box.top * rows, box.right * columns, box.bottom * rows};
  }

  void mirror() {
    mirror_it(annotated_.image);
    if (annotated_.mask) mirror_it(*annotated_.mask);
    const auto side = static_cast<float>(width());
    for (Box& box : annotated_.boxes)
      box = {side - box.right, box.top, side - box.left, box.bottom};
  }

  void turn_upside_down() {
    turn_it(annotated_.image);
    if (annotated_.mask) turn_it(*annotated_.mask);
    const auto side = static_cast<float>(height());
    for (Box& box : annotated_.boxes)
      box = {box.left, side - box.bottom, box.right, side - box.top};
  }

  void pad(const Padding& padding) {
    pad_it(annotated_.image, padding, 0);
    if (annotated_.mask) pad_it(*annotated_.mask, padding, options_.mask_fill);
    shift(padding.left, padding.top);
  }

  Image& pixels() { return annotated_.image; }

  LazyImage::Settled settled() { return {annotated_.image, spare_}; }
  void take_spare() { std::swap(annotated_.image, spare_); }

 private:
  void shift(int right, int down) {
    for (Box& box : annotated_.boxes) {
      box.left += static_cast<float>(right);
      box.right += static_cast<float>(right);
      box.top += static_cast<float>(down);
      box.bottom += static_cast<float>(down);
    }
  }

  Annotated& annotated_;
  const JointOptions& options_;
  Resizer resizer_;
  Image spare_;
};

void check(const Annotated& annotated) {
  const Image& image = annotated.image;
  if (annotated.mask &&
      (annotated.mask->width != image.width() || annotated.mask->height != image.height() ||
       annotated.mask->values.size() !=
           static_cast<std::size_t>(image.width()) * static_cast<std::size_t>(image.height()))) {
    throw Error(
        Code::invalid_argument,
        core::text("transform an image of ", image.width(), " x ", image.height(),
                   " with a mask of ", annotated.mask->width, " x ", annotated.mask->height));
  }
  if (annotated.labels.empty() || annotated.labels.size() == annotated.boxes.size()) return;
  throw Error(Code::invalid_argument,
              core::text("transform ", annotated.boxes.size(), " boxes with ",
                         annotated.labels.size(), " labels"));
}

void drop_small_boxes(Annotated& annotated, float least_side) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < annotated.boxes.size(); ++i) {
    const Box box = annotated.boxes[i];
    if (box.right - box.left < least_side || box.bottom - box.top < least_side) continue;
    if (!annotated.labels.empty()) annotated.labels[kept] = annotated.labels[i];
    annotated.boxes[kept++] = box;
  }
  annotated.boxes.resize(kept);
  if (!annotated.labels.empty()) annotated.labels.resize(kept);
}

}  // namespace

JointTransforms::JointTransforms(std::vector<transforms::Step> steps, JointOptions options)
    : steps_(std::move(steps)), options_(options) {
  for (const transforms::Step& step : steps_) {
    const bool is_joint = !std::holds_alternative<transforms::RandAugment>(step) &&
                          !std::holds_alternative<transforms::Normalize>(step);
    if (is_joint) continue;
    throw Error(Code::unsupported,
                "transform masks and boxes: RandAugment and Normalize act on images alone",
                "leave them out here, and normalise the batch");
  }
  auto fixed_size = steps_;
  fixed_size.push_back(transforms::CenterCrop{1});
  (void)Transforms(std::move(fixed_size));  // refuses options that cannot be
}

void JointTransforms::apply(Annotated& annotated, Draws draws) const {
  check(annotated);
  Together together(annotated, options_);
  for (const transforms::Step& step : steps_) {
    std::visit([&](const auto& kind) { steps::apply(kind, together, draws); }, step);
  }
  drop_small_boxes(annotated, options_.least_side);
}

}  // namespace yoke::feed
