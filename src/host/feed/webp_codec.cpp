#include "codec.hpp"

#ifdef YOKE_WEBP
#include <webp/decode.h>
#endif

namespace yoke::feed {

#ifdef YOKE_WEBP
namespace {

const std::uint8_t* data_of(ByteView bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

class WebpCodec final : public Codec {
 public:
  explicit WebpCodec(const DecodeOptions& options) : options_(options) {}

  ImageFacts open(ByteView bytes) override {
    bytes_ = bytes;
    WebPBitstreamFeatures features{};
    const VP8StatusCode status = WebPGetFeatures(data_of(bytes), bytes.size(), &features);
    if (status != VP8_STATUS_OK) fail("read the WebP's head", status);
    if (features.has_animation != 0) {
      throw Error(Code::unsupported, "decode the WebP: it is an animation",
                  "keep one of its frames");
    }
    check_pixels(features.width, features.height, options_);
    width_ = features.width;
    height_ = features.height;
    return {.format = ImageFormat::webp,
            .width = width_,
            .height = height_,
            .orientation = 1,
            .channels = features.has_alpha != 0 ? 4 : 3,
            .bits = 8,
            .cmyk = false,
            .progressive = false};
  }

  Region read(const Region& region, Image& image) override {
    image.reshape(width_, height_);
    const std::size_t row_bytes = image.row_bytes();
    const std::uint8_t* written = WebPDecodeRGBAInto(data_of(bytes_), bytes_.size(), image.row(0),
                                                     row_bytes * static_cast<std::size_t>(height_),
                                                     static_cast<int>(row_bytes));
    if (written == nullptr) fail("decode the WebP", VP8_STATUS_BITSTREAM_ERROR);
    return region;
  }

 private:
  [[noreturn]] void fail(const char* doing, VP8StatusCode status) const {
    const bool too_short = status == VP8_STATUS_NOT_ENOUGH_DATA;
    throw Error(
        Code::corrupt_data,
        core::text(doing, ": ", too_short ? "the file ends too early" : "damaged or cut short",
                   " (", bytes_.size(), " bytes)"),
        "fetch the file again");
  }

  const DecodeOptions options_;
  ByteView bytes_;
  int width_ = 0;
  int height_ = 0;
};

}  // namespace

bool has_webp() noexcept { return true; }

std::unique_ptr<Codec> make_webp_codec(const DecodeOptions& options) {
  return std::make_unique<WebpCodec>(options);
}
#else
bool has_webp() noexcept { return false; }

std::unique_ptr<Codec> make_webp_codec(const DecodeOptions& /*options*/) {
  throw Error(Code::unsupported, "decode the WebP: this Yoke was built without libwebp",
              "install libwebp-dev and build again, or convert the files");
}
#endif

}  // namespace yoke::feed
