#include "yoke/feed/resize.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "filter_taps.hpp"
#include "resize_kernels.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

struct NamedInterpolation {
  std::string_view name;
  Interpolation interpolation;
};
constexpr std::array kInterpolations{NamedInterpolation{"nearest", Interpolation::nearest},
                                     NamedInterpolation{"bilinear", Interpolation::bilinear},
                                     NamedInterpolation{"bicubic", Interpolation::bicubic}};

struct Axes {
  Axis columns;
  Axis rows;
};

Axes axes_of(const Region& region, const Resizer::Target& target) {
  Region window = target.window;
  if (window.width == 0 && window.height == 0) window = {0, 0, target.width, target.height};
  return {{region.width, target.width, window.left, window.right()},
          {region.height, target.height, window.top, window.bottom()}};
}

bool holds(const Axis& axis) {
  return axis.length > 0 && axis.result > 0 && axis.first >= 0 && axis.first < axis.end &&
         axis.end <= axis.result;
}

void check(const Axes& axes) {
  if (holds(axes.columns) && holds(axes.rows)) return;
  throw Error(
      Code::invalid_argument,
      core::text("resize ", axes.columns.length, " x ", axes.rows.length, " pixels to ",
                 axes.columns.result, " x ", axes.rows.result, ": columns ", axes.columns.first,
                 " to ", axes.columns.end, ", rows ", axes.rows.first, " to ", axes.rows.end));
}

void check_inside(const Image& image, const Region& needed) {
  if (needed.left >= 0 && needed.top >= 0 && needed.right() <= image.width() &&
      needed.bottom() <= image.height()) {
    return;
  }
  throw Error(Code::invalid_argument,
              core::text("resize a part of ", needed.width, " x ", needed.height, " pixels at ",
                         needed.left, ", ", needed.top, ": the image has ", image.width(), " x ",
                         image.height()));
}

}  // namespace

Interpolation interpolation_from_name(std::string_view name) {
  std::vector<std::string> known;
  for (const auto& candidate : kInterpolations) {
    if (candidate.name == name) return candidate.interpolation;
    known.emplace_back(candidate.name);
  }
  throw Error(Code::invalid_argument, core::text("interpolation \"", name, "\" is not known"),
              core::unknown_name_hint(name, known));
}

void Resizer::resize(const Image& image, const Region& region, const Target& target, Image& out) {
  const Axes axes = axes_of(region, target);
  check(axes);
  const ResizeKernels kernels = resize_kernels();
  const FilterTaps columns = filter_taps(axes.columns, target.interpolation);
  const FilterTaps rows = filter_taps(axes.rows, target.interpolation);
  const Region needed{region.left + columns.origin, region.top + rows.origin, columns.length,
                      rows.length};
  check_inside(image, needed);

  columns_.reshape(axes.columns.end - axes.columns.first, rows.length);
  for (int y = 0; y < columns_.height(); ++y) {
    kernels.sum_columns(
        columns, image.row(needed.top + y) + std::ptrdiff_t{needed.left} * Image::kPixelBytes,
        columns_.row(y));
  }
  out.reshape(columns_.width(), axes.rows.end - axes.rows.first);
  for (int y = 0; y < out.height(); ++y) {
    const auto row = static_cast<std::size_t>(y);
    kernels.sum_rows({.rows = columns_.row(rows.first[row]),
                      .stride = columns_.row_bytes(),
                      .weights = rows.of(y),
                      .used = rows.used[row],
                      .bits = rows.bits,
                      .bytes = out.row_bytes()},
                     out.row(y));
  }
}

Region needed_for(const Region& region, const Resizer::Target& target) {
  const Axes axes = axes_of(region, target);
  check(axes);
  const PixelRange columns = pixels_needed(axes.columns, target.interpolation);
  const PixelRange rows = pixels_needed(axes.rows, target.interpolation);
  return {region.left + columns.first, region.top + rows.first, columns.end - columns.first,
          rows.end - rows.first};
}

}  // namespace yoke::feed
