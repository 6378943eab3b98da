#include <spng.h>

#include <cstring>
#include <memory>

#include "codec.hpp"
#include "exif.hpp"

namespace yoke::feed {
namespace {

constexpr std::size_t kMostChunkBytes = 64U << 20;  // of a text or colour profile, and all of them

struct FreeContext {
  void operator()(spng_ctx* context) const noexcept { spng_ctx_free(context); }
};

class PngCodec final : public Codec {
 public:
  explicit PngCodec(const DecodeOptions& options) : options_(options) {}

  ImageFacts open(ByteView bytes) override {
    bytes_ = bytes;
    context_.reset(spng_ctx_new(0));
    if (!context_) throw Error(Code::io, "decode the PNG: no memory for its decoder");
    spng_set_chunk_limits(context_.get(), kMostChunkBytes, kMostChunkBytes);
    require("read the PNG's head", spng_set_png_buffer(context_.get(), bytes.data(), bytes.size()));
    require("read the PNG's head", spng_get_ihdr(context_.get(), &head_));
    check_pixels(head_.width, head_.height, options_);
    return facts();
  }

  Region read(const Region& region, Image& image) override {
    image.reshape(static_cast<int>(head_.width), static_cast<int>(head_.height));
    require("decode the PNG",
            spng_decode_image(context_.get(), nullptr, 0, SPNG_FMT_RGBA8, SPNG_DECODE_PROGRESSIVE));
    if (options_.truncated == Truncated::fill) clear(image);
    read_rows(image);
    context_.reset();
    return region;
  }

 private:
  [[nodiscard]] ImageFacts facts() {
    const bool color = (head_.color_type & SPNG_COLOR_TYPE_TRUECOLOR) != 0;
    const bool alpha = (head_.color_type & 4) != 0;
    return {.format = ImageFormat::png,
            .width = static_cast<int>(head_.width),
            .height = static_cast<int>(head_.height),
            .orientation = orientation(),
            .channels = (color ? 3 : 1) + (alpha ? 1 : 0),
            .bits = head_.bit_depth,
            .cmyk = false,
            .progressive = head_.interlace_method != 0};
  }

  // The chunk stands before the pixels in most files; one behind them is not looked for.
  [[nodiscard]] int orientation() {
    spng_exif exif{};
    if (spng_get_exif(context_.get(), &exif) != 0) return 1;
    return exif_orientation(std::as_bytes(std::span(exif.data, exif.length))).value_or(1);
  }

  static void clear(Image& image) {
    for (int y = 0; y < image.height(); ++y) std::memset(image.row(y), 0, image.row_bytes());
  }

  void read_rows(Image& image) {
    for (int code = 0; code != SPNG_EOI;) {
      spng_row_info row{};
      code = spng_get_row_info(context_.get(), &row);
      if (code == 0) {
        code = spng_decode_row(context_.get(), image.row(static_cast<int>(row.row_num)),
                               image.row_bytes());
      }
      if (code == SPNG_IO_EOF && options_.truncated == Truncated::fill) return;
      if (code != SPNG_EOI) require("decode the PNG", code);
    }
  }

  void require(const char* doing, int code) {
    if (code == 0) return;
    context_.reset();
    if (code == SPNG_IO_EOF) {
      throw Error(Code::corrupt_data,
                  core::text(doing, ": the file ends too early, after ", bytes_.size(), " bytes"),
                  "fetch the file again");
    }
    throw Error(code == SPNG_EMEM ? Code::io : Code::corrupt_data,
                core::text(doing, ": ", spng_strerror(code), " (", bytes_.size(), " bytes)"));
  }

  const DecodeOptions options_;
  std::unique_ptr<spng_ctx, FreeContext> context_;
  spng_ihdr head_{};
  ByteView bytes_;
};

}  // namespace

std::unique_ptr<Codec> make_png_codec(const DecodeOptions& options) {
  return std::make_unique<PngCodec>(options);
}

}  // namespace yoke::feed
