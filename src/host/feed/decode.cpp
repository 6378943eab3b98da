#include "yoke/feed/decode.hpp"

#include <array>
#include <cstring>
#include <utility>

#include "codec.hpp"
#include "exif.hpp"

namespace yoke::feed {
namespace {

bool has(ByteView bytes, std::size_t at, std::string_view text) {
  return bytes.size() >= at + text.size() &&
         std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

constexpr std::array kCodecs{make_jpeg_codec, make_png_codec, make_webp_codec};

std::string first_bytes(ByteView bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes.first(std::min<std::size_t>(8, bytes.size()))) {
    const auto value = std::to_integer<unsigned>(byte);
    text += text.empty() ? "" : " ";
    text += {kDigits[value >> 4], kDigits[value & 15]};
  }
  return text;
}

[[noreturn]] void refuse_format(ByteView bytes) {
  if (bytes.empty()) throw Error(Code::corrupt_data, "decode the image: it has 0 bytes");
  throw Error(Code::unsupported,
              core::text("decode the image: its first bytes (", first_bytes(bytes),
                         ") are not those of JPEG, PNG or WebP"),
              "convert the file, or leave it out");
}

}  // namespace

std::string_view name(ImageFormat format) noexcept {
  constexpr std::array<std::string_view, 3> kNames{"JPEG", "PNG", "WebP"};
  return kNames[static_cast<std::size_t>(format)];
}

std::optional<ImageFormat> format_of(ByteView bytes) noexcept {
  if (has(bytes, 0, "\xFF\xD8\xFF")) return ImageFormat::jpeg;
  if (has(bytes, 0, "\x89PNG\r\n\x1A\n")) return ImageFormat::png;
  if (has(bytes, 0, "RIFF") && has(bytes, 8, "WEBP")) return ImageFormat::webp;
  return std::nullopt;
}

void check_pixels(std::int64_t width, std::int64_t height, const DecodeOptions& options) {
  if (width > 0 && height > 0 && width <= options.max_pixels / height) return;
  throw Error(Code::unsupported,
              core::text("decode the image: its head announces ", width, " x ", height,
                         " pixels, and at most ", options.max_pixels, " are allowed"),
              "raise max_pixels if the image is meant to be so large");
}

struct ImageDecoder::State {
  explicit State(const DecodeOptions& decode_options) : options(decode_options) {}

  Codec& codec_for(ImageFormat format) {
    auto& codec = codecs[static_cast<std::size_t>(format)];
    if (!codec) codec = kCodecs[static_cast<std::size_t>(format)](options);
    return *codec;
  }

  const DecodeOptions options;
  std::array<std::unique_ptr<Codec>, kCodecs.size()> codecs;
  Codec* current = nullptr;
  ImageFacts stored;    // before its orientation
  int orientation = 1;  // to apply
  Image turned;
};

ImageDecoder::ImageDecoder(DecodeOptions options) : state_(std::make_unique<State>(options)) {}
ImageDecoder::~ImageDecoder() = default;

ImageFacts ImageDecoder::open(ByteView bytes) {
  State& s = *state_;
  s.current = nullptr;
  const auto format = format_of(bytes);
  if (!format) refuse_format(bytes);
  Codec& codec = s.codec_for(*format);
  ImageFacts facts = s.stored = codec.open(bytes);
  s.orientation = s.options.exif == Exif::apply ? facts.orientation : 1;
  if (is_transposed(s.orientation)) std::swap(facts.width, facts.height);
  s.current = &codec;
  return facts;
}

Region ImageDecoder::read(const Region& region, Image& image) {
  State& s = *state_;
  if (s.current == nullptr) throw Error(Code::internal, "decode the image: none is open");
  Codec& codec = *std::exchange(s.current, nullptr);
  if (s.orientation == 1) return codec.read(region, image);
  const Region inside =
      codec.read(stored_region(region, s.orientation, s.stored.width, s.stored.height), s.turned);
  image = upright(s.turned, inside, s.orientation);
  return image.whole();
}

void ImageDecoder::read(Image& image) {
  const State& s = *state_;
  Region whole{0, 0, s.stored.width, s.stored.height};
  if (is_transposed(s.orientation)) std::swap(whole.width, whole.height);
  (void)read(whole, image);  // of a whole image nothing lies around it
}

int ImageDecoder::warnings() const noexcept {
  int sum = 0;
  for (const auto& codec : state_->codecs) sum += codec ? codec->warnings() : 0;
  return sum;
}

}  // namespace yoke::feed
