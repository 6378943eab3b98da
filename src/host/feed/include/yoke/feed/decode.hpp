#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "yoke/feed/image.hpp"

namespace yoke::feed {

enum class ImageFormat { jpeg, png, webp };

[[nodiscard]] std::string_view name(ImageFormat format) noexcept;

/// By the first bytes, whatever a file's name says (ImageNet has a PNG named .JPEG); nothing for
/// bytes that begin as none of them.
[[nodiscard]] std::optional<ImageFormat> format_of(std::span<const std::byte> bytes) noexcept;

/// What an EXIF orientation does.
enum class Exif {
  ignore,  ///< nothing, as in Pillow's open() and torchvision's loaders
  apply,   ///< the image is turned upright
};

/// What happens to an image whose file was cut short.
enum class Truncated {
  refuse,  ///< corrupt_data, as in Pillow
  fill,    ///< rows that are missing are gray (JPEG) or black (PNG)
};

struct DecodeOptions {
  Exif exif = Exif::ignore;
  Truncated truncated = Truncated::refuse;
  std::int64_t max_pixels = 178'956'970;  ///< more are refused before memory is taken; Pillow's
                                          ///< limit
};

/// What the head of an image's file says.
struct ImageFacts {
  ImageFormat format = ImageFormat::jpeg;
  int width = 0;  ///< as read() gives it: after the orientation where it is applied
  int height = 0;
  int orientation = 1;  ///< EXIF's, 1 to 8
  int channels = 3;     ///< in the file: 1 gray, 2 gray and alpha, 3, 4
  int bits = 8;         ///< of a channel in the file
  bool cmyk = false;
  bool progressive = false;  ///< or interlaced
};

/// Turns an image's file into pixels: JPEG, PNG, and WebP where Yoke was built with libwebp.
///
///   ImageDecoder decoder;
///   const ImageFacts facts = decoder.open(bytes);
///   const Region inside = decoder.read(crop_of(facts), image);
///
/// Pixels: red, green, blue; gray is repeated, alpha dropped, palettes looked up, of 16 bits the
///   upper 8 taken; CMYK is Adobe's inverted one and is converted as Pillow does. JPEG: the
///   accurate integer transform and smooth ("fancy") chroma, the same pixels as Pillow's.
/// Owns: the codecs' memory, for the next image. Borrows the bytes from open() to the next open().
/// Threads: one thread at a time.
/// Errors: corrupt_data with what the codec says and where; unsupported for another format and for
///   an image beyond max_pixels. After an error the decoder is ready for the next open().
class ImageDecoder {
 public:
  explicit ImageDecoder(DecodeOptions options = {});
  ~ImageDecoder();
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  /// Reads the head. Cost: some microseconds.
  ImageFacts open(std::span<const std::byte> bytes);

  /// Decodes `region` of the open image and some pixels around it into `image`; returns where in
  /// `image` the region lies. Its pixels are those of a decode of the whole.
  ///
  /// Once for each open(). Requires: a region inside the image.
  /// Cost: JPEG: all coefficients up to the region's last row; pixels of the region alone. A file
  ///   without its end mark is read to its end, so that the answer does not depend on the region.
  Region read(const Region& region, Image& image);

  /// The whole image.
  void read(Image& image);

  /// Faults in the last image that its codec passed over, as Pillow does.
  [[nodiscard]] int warnings() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace yoke::feed
