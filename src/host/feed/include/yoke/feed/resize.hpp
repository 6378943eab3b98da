#pragma once

#include <string_view>

#include "yoke/feed/image.hpp"

namespace yoke::feed {

/// How pixels are weighted. Names as in torchvision.
enum class Interpolation { nearest, bilinear, bicubic };

/// "nearest", "bilinear" or "bicubic". Errors: invalid_argument with the names known.
[[nodiscard]] Interpolation interpolation_from_name(std::string_view name);

/// Makes images larger or smaller as Pillow does: the filter grows with the step (antialias), its
/// columns are summed first, then its rows, each sum rounded to a byte. Pixels outside the region
/// count for nothing.
///
///   Resizer resizer;
///   resizer.resize(image, crop, {.width = 224, .height = 224}, out);
///
/// Within 1 of Pillow's result: weights have 16 bits here, 22 there. Equal on every machine: the
/// vector units and the plain loops give the same sums.
///
/// Owns: memory for the sums of columns, for the next image. Threads: one thread at a time.
/// Errors: invalid_argument for a size that is not positive, an empty region, and one of which the
///   needed part is not inside the image.
class Resizer {
 public:
  struct Target {
    int width = 0;
    int height = 0;
    Interpolation interpolation = Interpolation::bilinear;
    Region window{};  ///< the part of the result to make; empty: all of it
  };

  /// `out` gets the size of the window.
  void resize(const Image& image, const Region& region, const Target& target, Image& out);

 private:
  Image columns_;
};

/// The part of `region` on which `target.window` depends: what must be decoded for it.
[[nodiscard]] Region needed_for(const Region& region, const Resizer::Target& target);

}  // namespace yoke::feed
