#include "yoke/feed/transforms.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "lazy_image.hpp"
#include "transform_steps.hpp"
#include "write_pixels.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

using namespace transforms;
using steps::between;
using steps::rounded;
using steps::up_to;
using steps::width_of;

[[noreturn]] void refuse(const char* step, const std::string& what) {
  throw Error(Code::invalid_argument, core::text("transforms: ", step, ": ", what));
}

void require_size(const char* step, int height, int width) {
  if (height > 0 && width >= 0) return;
  refuse(step, core::text("the size ", width, " x ", height, " is not positive"));
}

void require_chance(const char* step, double p) {
  if (p < 0 || p > 1) refuse(step, core::text("the probability ", p, " is not in 0..1"));
}

void require_interval(const char* step, const Interval& interval, double low, double high) {
  if (interval.low >= low && interval.low <= interval.high && interval.high <= high) return;
  refuse(step, core::text("the interval ", interval.low, " to ", interval.high,
                          " is not an interval in ", low, " to ", high));
}

// What is known of the size after a step; 0: open.
struct Size {
  int width = 0;
  int height = 0;
};

constexpr double kAny = 1e9;

void check(const Resize& step, Size& size) {
  require_size("Resize", step.size, step.width);
  size = step.width > 0 ? Size{step.width, step.size} : Size{};
}
void check(const CenterCrop& step, Size& size) {
  require_size("CenterCrop", step.height, step.width);
  size = {width_of(step), step.height};
}
void check(const RandomResizedCrop& step, Size& size) {
  require_size("RandomResizedCrop", step.height, step.width);
  require_interval("RandomResizedCrop", step.scale, 1e-9, kAny);
  require_interval("RandomResizedCrop", step.ratio, 1e-9, kAny);
  size = {width_of(step), step.height};
}
void check(const RandomCrop& step, Size& size) {
  require_size("RandomCrop", step.height, step.width);
  if (step.padding < 0) refuse("RandomCrop", core::text("the padding is ", step.padding));
  size = {width_of(step), step.height};
}
void check(const RandomHorizontalFlip& step, Size&) {
  require_chance("RandomHorizontalFlip", step.p);
}
void check(const RandomVerticalFlip& step, Size&) { require_chance("RandomVerticalFlip", step.p); }
void check(const ColorJitter& step, Size&) {
  for (const auto& factor : {step.brightness, step.contrast, step.saturation}) {
    if (factor) require_interval("ColorJitter", *factor, 0, kAny);
  }
  if (step.hue) require_interval("ColorJitter", *step.hue, -0.5, 0.5);
}
void check(const RandAugment& step, Size&) {
  const bool fits = step.num_ops >= 0 && step.num_magnitude_bins >= 2 && step.magnitude >= 0 &&
                    step.magnitude < step.num_magnitude_bins;
  if (fits) return;
  refuse("RandAugment", core::text(step.num_ops, " operations of magnitude ", step.magnitude,
                                   " of ", step.num_magnitude_bins, " bins"));
}
void check(const Normalize& step, Size&) {
  for (const float std : step.std) {
    if (!(std > 0)) refuse("Normalize", core::text("the standard deviation is ", std));
  }
}

Region central_crop(const RandomResizedCrop& crop, int width, int height) {
  const double ratio = static_cast<double>(width) / height;
  int w = width;
  int h = height;
  if (ratio < crop.ratio.low) h = std::min(height, rounded(w / crop.ratio.low));
  if (ratio > crop.ratio.high) w = std::min(width, rounded(h * crop.ratio.high));
  return {(width - w) / 2, (height - h) / 2, w, h};
}

}  // namespace

namespace transforms {

Region crop_box(const RandomResizedCrop& crop, int width, int height, Draws& draws) {
  constexpr int kTries = 10;
  const Interval log_ratio{std::log(crop.ratio.low), std::log(crop.ratio.high)};
  for (int i = 0; i < kTries; ++i) {
    const double area = static_cast<double>(width) * height * between(crop.scale, draws);
    const double ratio = std::exp(between(log_ratio, draws));
    const int w = rounded(std::sqrt(area * ratio));
    const int h = rounded(std::sqrt(area / ratio));
    if (w <= 0 || w > width || h <= 0 || h > height) continue;
    const int top = up_to(height - h, draws);
    const int left = up_to(width - w, draws);
    return {left, top, w, h};
  }
  return central_crop(crop, width, height);
}

}  // namespace transforms

Transforms::Transforms(std::vector<Step> steps, PixelLayout layout)
    : steps_(std::move(steps)), layout_(layout) {
  Size size;
  for (const Step& step : steps_) {
    if (normalize_) refuse("Normalize", "a step stands behind it");
    std::visit([&](const auto& kind) { check(kind, size); }, step);
    if (const auto* normalize = std::get_if<Normalize>(&step)) normalize_ = *normalize;
  }
  if (size.width == 0) {
    throw Error(Code::invalid_argument,
                "transforms: images of different sizes would come out of these steps",
                "add CenterCrop or RandomResizedCrop");
  }
  width_ = size.width;
  height_ = size.height;
}

std::size_t Transforms::bytes() const noexcept {
  const auto values = static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_) * 3;
  return values * (gives_floats() ? sizeof(float) : 1);
}

void Transforms::apply(std::span<const std::byte> file, Draws& draws, TransformWorkspace& workspace,
                       std::span<std::byte> row) const {
  LazyImage image(workspace.decoder.open(file), workspace);
  for (const Step& step : steps_) {
    std::visit([&](const auto& kind) { steps::apply(kind, image, draws); }, step);
  }
  const Image& pixels = image.pixels();
  if (!normalize_) return write_bytes(pixels, image.mirrored(), layout_, row);
  const std::span floats(reinterpret_cast<float*>(row.data()), row.size() / sizeof(float));
  write_floats(pixels, image.mirrored(), layout_, *normalize_, floats);
}

}  // namespace yoke::feed
