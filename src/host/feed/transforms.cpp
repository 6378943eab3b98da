#include "yoke/feed/transforms.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "augment.hpp"
#include "color.hpp"
#include "lazy_image.hpp"
#include "write_pixels.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

using namespace transforms;

// Python's round(): halves go to the even neighbour.
int rounded(double value) { return static_cast<int>(std::nearbyint(value)); }

double between(const Interval& interval, Draws& draws) {
  return interval.low + (interval.high - interval.low) * draws.uniform();
}

int up_to(int last, Draws& draws) {
  return static_cast<int>(draws.below(static_cast<std::uint64_t>(last) + 1));
}

template <class Crop>
int width_of(const Crop& crop) {
  return crop.width > 0 ? crop.width : crop.height;
}

void apply(const Resize& step, LazyImage& image, Draws& /*draws*/) {
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

void apply(const CenterCrop& step, LazyImage& image, Draws& /*draws*/) {
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

void apply(const RandomResizedCrop& step, LazyImage& image, Draws& draws) {
  image.crop(crop_box(step, image.width(), image.height(), draws));
  image.resize(width_of(step), step.height, step.interpolation);
}

void apply(const RandomCrop& step, LazyImage& image, Draws& draws) {
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

void apply(const RandomHorizontalFlip& step, LazyImage& image, Draws& draws) {
  if (draws.uniform() < step.p) image.mirror();
}

void apply(const RandomVerticalFlip& step, LazyImage& image, Draws& draws) {
  if (draws.uniform() < step.p) image.turn_upside_down();
}

void apply(const ColorJitter& step, LazyImage& image, Draws& draws) {
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
    if (changes[i].factor) changes[i].adjust(image.pixels(), *changes[i].factor);
  }
}

// The step's place between two ends, in torch.linspace()'s arithmetic.
double strength(const RandAugment& step, float begin, float end) {
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

bool has_sign(Change change) { return change >= Change::shear_x && change <= Change::sharpness; }

void augment_once(const RandAugment& step, LazyImage& image, Draws& draws) {
  const auto change = static_cast<Change>(draws.below(kChanges));
  const double sign = has_sign(change) && draws.below(2) == 1 ? -1 : 1;
  const LazyImage::Settled settled = image.settled();
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
      return warped(
          rotate_matrix(sign * strength(step, 0, 30), pixels.width(), pixels.height()));
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

void apply(const RandAugment& step, LazyImage& image, Draws& draws) {
  for (int i = 0; i < step.num_ops; ++i) augment_once(step, image, draws);
}

void apply(const Normalize& /*step*/, LazyImage& /*image*/, Draws& /*draws*/) {}

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
    std::visit([&](const auto& kind) { feed::apply(kind, image, draws); }, step);
  }
  const Image& pixels = image.pixels();
  if (!normalize_) return write_bytes(pixels, image.mirrored(), layout_, row);
  const std::span floats(reinterpret_cast<float*>(row.data()), row.size() / sizeof(float));
  write_floats(pixels, image.mirrored(), layout_, *normalize_, floats);
}

}  // namespace yoke::feed
