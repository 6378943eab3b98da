#include <algorithm>
#include <array>
#include <vector>

#include "codec.hpp"
#include "exif.hpp"
#include "jpeg_library.hpp"

namespace yoke::feed {
namespace {

constexpr int kMostScans = 500;  // a hostile progressive file has thousands, each a pass over all
constexpr std::size_t kTailBytes =
    64;  // an end mark further from the end than this is not looked for

// Reads from memory; beyond its end an end mark, so that the library finishes what it has.
struct MemorySource {
  jpeg_source_mgr manager{};  // first: the library hands back its address
  bool ran_out = false;
};

void do_nothing(j_decompress_ptr /*jpeg*/) {}

boolean give_end_mark(j_decompress_ptr jpeg) {
  static constexpr std::array<JOCTET, 2> kEndMark{0xFF, JPEG_EOI};
  reinterpret_cast<MemorySource*>(jpeg->src)->ran_out = true;
  jpeg->src->next_input_byte = kEndMark.data();
  jpeg->src->bytes_in_buffer = kEndMark.size();
  return TRUE;
}

void skip(j_decompress_ptr jpeg, long count) {
  if (count <= 0) return;
  const auto wanted = static_cast<std::size_t>(count);
  if (wanted > jpeg->src->bytes_in_buffer) {
    give_end_mark(jpeg);
    return;
  }
  jpeg->src->next_input_byte += wanted;
  jpeg->src->bytes_in_buffer -= wanted;
}

void limit_scans(j_common_ptr common) {
  if (!common->is_decompressor) return;
  auto* jpeg = reinterpret_cast<j_decompress_ptr>(common);
  if (jpeg->input_scan_number > kMostScans) {
    std::snprintf(reinterpret_cast<JpegErrors*>(common->err)->text, JMSG_LENGTH_MAX,
                  "more than %d scans", kMostScans);
    std::longjmp(reinterpret_cast<JpegErrors*>(common->err)->jump, 1);
  }
}

bool ends_whole(ByteView bytes) {
  const ByteView tail = bytes.last(std::min(kTailBytes, bytes.size()));
  for (std::size_t i = tail.size(); i-- > 1;) {
    if (tail[i] == std::byte{JPEG_EOI} && tail[i - 1] == std::byte{0xFF}) return true;
  }
  return false;
}

// value * scale / 255, rounded.
std::uint8_t times(unsigned value, unsigned scale) {
  const unsigned product = value * scale + 128;
  return static_cast<std::uint8_t>((product + (product >> 8)) >> 8);
}

// The file has 255 - C, 255 - M, 255 - Y, 255 - K: Adobe's way, and everybody's since.
void inverted_cmyk_to_rgb(std::uint8_t* row, int width) {
  for (int x = 0; x < width; ++x, row += Image::kPixelBytes) {
    const unsigned black = row[3];
    for (int channel = 0; channel < 3; ++channel) {
      row[channel] = times(row[channel], black);
    }
  }
}

class JpegCodec final : public Codec {
 public:
  explicit JpegCodec(const DecodeOptions& options) : options_(options) {
    jpeg_.err = &errors_.manager;
    if (!errors_.guarded([this] { jpeg_create_decompress(&jpeg_); })) fail("start the decoder");
    progress_.progress_monitor = limit_scans;
    jpeg_.progress = &progress_;
    source_.manager.init_source = do_nothing;
    source_.manager.fill_input_buffer = give_end_mark;
    source_.manager.skip_input_data = skip;
    source_.manager.resync_to_restart = jpeg_resync_to_restart;
    source_.manager.term_source = do_nothing;
    jpeg_.src = &source_.manager;
    if (!errors_.guarded([this] { jpeg_save_markers(&jpeg_, JPEG_APP0 + 1, 0xFFFF); })) {
      fail("start the decoder");
    }
  }

  ~JpegCodec() override { jpeg_destroy_decompress(&jpeg_); }
  JpegCodec(const JpegCodec&) = delete;
  JpegCodec& operator=(const JpegCodec&) = delete;

  ImageFacts open(ByteView bytes) override {
    jpeg_abort_decompress(&jpeg_);
    bytes_ = bytes;
    source_.ran_out = false;
    source_.manager.next_input_byte = reinterpret_cast<const JOCTET*>(bytes.data());
    source_.manager.bytes_in_buffer = bytes.size();
    errors_.manager.num_warnings = 0;
    if (!errors_.guarded([this] { jpeg_read_header(&jpeg_, TRUE); })) fail("read the JPEG's head");
    check_pixels(jpeg_.image_width, jpeg_.image_height, options_);
    return facts();
  }

  Region read(const Region& region, Image& image) override {
    region_ = region;
    const bool whole_file = !ends_whole(bytes_);
    if (!errors_.guarded([this] { start(); })) fail("decode the JPEG");
    image.reshape(static_cast<int>(jpeg_.output_width), region.height);
    image_ = &image;
    if (!errors_.guarded([this] { read_rows(); })) fail("decode the JPEG");
    if (whole_file) rest_.resize(image.row_bytes());
    if (whole_file && !errors_.guarded([this] { read_rest(); })) fail("decode the JPEG");
    jpeg_abort_decompress(&jpeg_);
    check_end();
    if (jpeg_.out_color_space == JCS_CMYK) {
      for (int y = 0; y < image.height(); ++y) inverted_cmyk_to_rgb(image.row(y), image.width());
    }
    return {region.left - first_column_, 0, region.width, region.height};
  }

  [[nodiscard]] int warnings() const noexcept override {
    return static_cast<int>(errors_.manager.num_warnings);
  }

 private:
  [[nodiscard]] ImageFacts facts() const {
    return {.format = ImageFormat::jpeg,
            .width = static_cast<int>(jpeg_.image_width),
            .height = static_cast<int>(jpeg_.image_height),
            .orientation = orientation(),
            .channels = jpeg_.num_components,
            .bits = jpeg_.data_precision,
            .cmyk = jpeg_.num_components == 4,
            .progressive = jpeg_.progressive_mode != 0};
  }

  [[nodiscard]] int orientation() const {
    for (const jpeg_marker_struct* marker = jpeg_.marker_list; marker != nullptr;
         marker = marker->next) {
      const auto found = exif_orientation(
          std::as_bytes(std::span(marker->data, static_cast<std::size_t>(marker->data_length))));
      if (found) return *found;
    }
    return 1;
  }

  void start() {
    jpeg_.out_color_space = jpeg_.num_components == 4 ? JCS_CMYK : JCS_EXT_RGBX;
    jpeg_.dct_method = JDCT_ISLOW;
    jpeg_.do_fancy_upsampling = TRUE;
    jpeg_start_decompress(&jpeg_);
    crop_columns();
    if (region_.top > 0) {
      jpeg_skip_scanlines(&jpeg_, static_cast<JDIMENSION>(region_.top));
    }
  }

  // Smooth chroma looks one chroma column to either side, which is at most two pixels away; the
  // library widens to whole blocks on the left.
  void crop_columns() {
    constexpr int kContext = 2;
    const int width = static_cast<int>(jpeg_.output_width);
    const int left = std::max(0, region_.left - kContext);
    const int right = std::min(width, region_.right() + kContext);
    auto first = static_cast<JDIMENSION>(left);
    auto count = static_cast<JDIMENSION>(right - left);
    if (left > 0 || right < width) jpeg_crop_scanline(&jpeg_, &first, &count);
    first_column_ = static_cast<int>(first);
  }

  void read_rows() {
    for (int y = 0; y < region_.height;) {
      std::array<JSAMPROW, 4> rows{};
      const int count = std::min(static_cast<int>(rows.size()), region_.height - y);
      for (int i = 0; i < count; ++i) rows[static_cast<std::size_t>(i)] = image_->row(y + i);
      y += static_cast<int>(
          jpeg_read_scanlines(&jpeg_, rows.data(), static_cast<JDIMENSION>(count)));
    }
  }

  // Skipping would not look at the bytes.
  void read_rest() {
    JSAMPROW row = rest_.data();
    while (jpeg_.output_scanline < jpeg_.output_height) jpeg_read_scanlines(&jpeg_, &row, 1);
  }

  void check_end() {
    if (!source_.ran_out || options_.truncated == Truncated::fill) return;
    throw Error(
        Code::corrupt_data,
        core::text("decode the JPEG: the file ends too early, after ", bytes_.size(), " bytes"),
        "fetch the file again");
  }

  [[noreturn]] void fail(const char* doing) {
    const std::size_t at = bytes_.size() - (source_.ran_out ? 0 : source_.manager.bytes_in_buffer);
    jpeg_abort_decompress(&jpeg_);
    throw Error(Code::corrupt_data, core::text(doing, ": ", errors_.text, " (near byte ", at,
                                               " of ", bytes_.size(), ")"));
  }

  const DecodeOptions options_;
  JpegErrors errors_;
  jpeg_decompress_struct jpeg_{};
  jpeg_progress_mgr progress_{};
  MemorySource source_;
  ByteView bytes_;
  Region region_;
  Image* image_ = nullptr;
  std::vector<JSAMPLE> rest_;  // a row that nobody asked for
  int first_column_ = 0;
};

}  // namespace

std::unique_ptr<Codec> make_jpeg_codec(const DecodeOptions& options) {
  return std::make_unique<JpegCodec>(options);
}

}  // namespace yoke::feed
