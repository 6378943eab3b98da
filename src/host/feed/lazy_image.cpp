#include "lazy_image.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace yoke::feed {
namespace {

void copy(const Image& from, const Region& region, Image& to) {
  to.reshape(region.width, region.height);
  for (int y = 0; y < region.height; ++y) {
    std::memcpy(to.row(y),
                from.row(region.top + y) + std::ptrdiff_t{region.left} * Image::kPixelBytes,
                to.row_bytes());
  }
}

}  // namespace

LazyImage::LazyImage(const ImageFacts& facts, TransformWorkspace& workspace)
    : workspace_(workspace), region_{0, 0, facts.width, facts.height} {}

void LazyImage::crop(const Region& region) {
  Region& whole = target_ ? target_->window : region_;
  const int from_left = mirrored_ ? whole.width - region.right() : region.left;
  whole = {whole.left + from_left, whole.top + region.top, region.width, region.height};
}

void LazyImage::resize(int width, int height, Interpolation interpolation) {
  if (target_) materialise();
  if (mirrored_) mirror_now();  // rounding need not be the same from the other side
  target_ = {.width = width,
             .height = height,
             .interpolation = interpolation,
             .window = {0, 0, width, height}};
}

void LazyImage::mirror_now() {
  Image& image = pixels();
  for (int y = 0; y < image.height(); ++y) {
    auto* row = reinterpret_cast<std::uint32_t*>(image.row(y));  // a pixel each, moved whole
    std::reverse(row, row + image.width());
  }
  mirrored_ = false;
}

LazyImage::Settled LazyImage::settled() {
  if (mirrored_) mirror_now();
  return {pixels(), workspace_.spare};
}

void LazyImage::take_spare() { std::swap(workspace_.made, workspace_.spare); }

void LazyImage::turn_upside_down() {
  Image& image = pixels();
  for (int y = 0; y < image.height() / 2; ++y) {
    std::swap_ranges(image.row(y), image.row(y) + image.row_bytes(),
                     image.row(image.height() - 1 - y));
  }
}

void LazyImage::pad(const Padding& padding) {
  const Image& image = pixels();
  const int left = mirrored_ ? padding.right : padding.left;
  Image& padded = workspace_.spare;
  padded.reshape(image.width() + padding.left + padding.right,
                 image.height() + padding.top + padding.bottom);
  std::memset(padded.row(0), 0, static_cast<std::size_t>(padded.height()) * padded.row_bytes());
  for (int y = 0; y < image.height(); ++y) {
    std::memcpy(padded.row(padding.top + y) + std::ptrdiff_t{left} * Image::kPixelBytes,
                image.row(y), image.row_bytes());
  }
  std::swap(workspace_.made, workspace_.spare);
  region_ = workspace_.made.whole();
}

Image& LazyImage::pixels() {
  if (!loaded_ || target_ || region_ != workspace_.made.whole()) materialise();
  return workspace_.made;
}

// After it the image is workspace_.made, as a whole, mirrored where it was.
void LazyImage::materialise() {
  if (!loaded_) {
    const Region needed = target_ ? needed_for(region_, *target_) : region_;
    const Region inside = workspace_.decoder.read(needed, workspace_.decoded);
    region_.left += inside.left - needed.left;
    region_.top += inside.top - needed.top;
  } else {
    std::swap(workspace_.decoded, workspace_.made);
  }
  if (target_) {
    workspace_.resizer.resize(workspace_.decoded, region_, *target_, workspace_.made);
  } else if (region_ == workspace_.decoded.whole()) {
    std::swap(workspace_.decoded, workspace_.made);
  } else {
    copy(workspace_.decoded, region_, workspace_.made);
  }
  loaded_ = true;
  target_.reset();
  region_ = workspace_.made.whole();
}

}  // namespace yoke::feed
