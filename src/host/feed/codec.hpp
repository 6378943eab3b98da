#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/feed/decode.hpp"

namespace yoke::feed {

using ByteView = std::span<const std::byte>;

/// One image format. ImageDecoder's contract for open() and read(), without the orientation: sizes
/// and regions are those of the file.
class Codec {
 public:
  Codec() = default;
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;
  virtual ~Codec() = default;

  virtual ImageFacts open(ByteView bytes) = 0;
  virtual Region read(const Region& region, Image& image) = 0;
  [[nodiscard]] virtual int warnings() const noexcept { return 0; }
};

[[nodiscard]] std::unique_ptr<Codec> make_jpeg_codec(const DecodeOptions& options);
[[nodiscard]] std::unique_ptr<Codec> make_png_codec(const DecodeOptions& options);
[[nodiscard]] std::unique_ptr<Codec> make_webp_codec(const DecodeOptions& options);

/// Whether Yoke was built with libwebp.
[[nodiscard]] bool has_webp() noexcept;

/// Errors: unsupported for an image of more pixels than allowed.
void check_pixels(std::int64_t width, std::int64_t height, const DecodeOptions& options);

}  // namespace yoke::feed
