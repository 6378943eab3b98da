#include "yoke/feed/encode.hpp"

#include <cstdlib>

#include "jpeg_library.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

class JpegEncoder {
 public:
  JpegEncoder() { jpeg_.err = &errors_.manager; }
  ~JpegEncoder() {
    jpeg_destroy_compress(&jpeg_);
    std::free(memory_);
  }
  JpegEncoder(const JpegEncoder&) = delete;
  JpegEncoder& operator=(const JpegEncoder&) = delete;

  std::vector<std::byte> encode(const Image& image, int quality) {
    if (!errors_.guarded([&] { write(image, quality); })) {
      throw Error(Code::unsupported, core::text("encode ", image.width(), " x ", image.height(),
                                                " pixels as JPEG: ", errors_.text));
    }
    const auto* bytes = reinterpret_cast<const std::byte*>(memory_);
    return {bytes, bytes + size_};
  }

 private:
  // See Note [Jumps].
  void write(const Image& image, int quality) {
    jpeg_create_compress(&jpeg_);
    jpeg_mem_dest(&jpeg_, &memory_, &size_);
    jpeg_.image_width = static_cast<JDIMENSION>(image.width());
    jpeg_.image_height = static_cast<JDIMENSION>(image.height());
    jpeg_.input_components = Image::kPixelBytes;
    jpeg_.in_color_space = JCS_EXT_RGBX;
    jpeg_set_defaults(&jpeg_);
    jpeg_set_quality(&jpeg_, quality, TRUE);
    jpeg_.optimize_coding = TRUE;
    jpeg_start_compress(&jpeg_, TRUE);
    for (int y = 0; y < image.height(); ++y) {
      JSAMPROW row = const_cast<std::uint8_t*>(image.row(y));  // read only, but the type is older
      jpeg_write_scanlines(&jpeg_, &row, 1);
    }
    jpeg_finish_compress(&jpeg_);
  }

  JpegErrors errors_;
  jpeg_compress_struct jpeg_{};
  unsigned char* memory_ = nullptr;
  unsigned long size_ = 0;
};

}  // namespace

std::vector<std::byte> encode_jpeg(const Image& image, const JpegOptions& options) {
  if (options.quality < 1 || options.quality > 100) {
    throw Error(Code::invalid_argument,
                core::text("encode a JPEG: the quality ", options.quality, " is not in 1..100"));
  }
  JpegEncoder encoder;
  return encoder.encode(image, options.quality);
}

}  // namespace yoke::feed
