#include "exif.hpp"

#include <cstdint>
#include <cstring>
#include <string_view>

namespace yoke::feed {
namespace {

constexpr unsigned kOrientationTag = 0x0112;
constexpr std::size_t kEntryBytes = 12;

// A TIFF file's numbers, in either byte order; 0 outside the bytes.
class Tiff {
 public:
  explicit Tiff(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool begins() {
    if (bytes_.size() < 8) return false;
    big_endian_ = bytes_[0] == std::byte{'M'};
    return bytes_[0] == bytes_[1] && (big_endian_ || bytes_[0] == std::byte{'I'}) &&
           number(2, 2) == 42;
  }

  [[nodiscard]] std::uint32_t number(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t place = big_endian_ ? at + i : at + size - 1 - i;
      value = value << 8 | std::to_integer<std::uint32_t>(bytes_[place]);
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool big_endian_ = false;
};

// The orientations as: first the image is transposed, or not; then its columns and its rows run
// backwards, or not.
struct Turn {
  bool transpose;
  bool mirror;
  bool upside_down;
};

constexpr Turn turn_of(int orientation) {
  switch (orientation) {
    case 2: return {false, true, false};
    case 3: return {false, true, true};
    case 4: return {false, false, true};
    case 5: return {true, false, false};
    case 6: return {true, true, false};
    case 7: return {true, true, true};
    case 8: return {true, false, true};
    default: return {false, false, false};
  }
}

}  // namespace

std::optional<int> exif_orientation(std::span<const std::byte> segment) noexcept {
  constexpr std::string_view kMark("Exif\0\0", 6);
  if (segment.size() >= kMark.size() &&
      std::memcmp(segment.data(), kMark.data(), kMark.size()) == 0) {
    segment = segment.subspan(kMark.size());
  }
  Tiff tiff(segment);
  if (!tiff.begins()) return std::nullopt;
  const std::size_t folder = tiff.number(4, 4);
  const std::size_t entries = tiff.number(folder, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = folder + 2 + i * kEntryBytes;
    if (tiff.number(entry, 2) != kOrientationTag) continue;
    const auto value = static_cast<int>(tiff.number(entry + 8, 2));
    if (value >= 1 && value <= 8) return value;
  }
  return std::nullopt;
}

Region stored_region(const Region& region, int orientation, int stored_width,
                     int stored_height) noexcept {
  const Turn turn = turn_of(orientation);
  const int upright_width = turn.transpose ? stored_height : stored_width;
  const int upright_height = turn.transpose ? stored_width : stored_height;
  Region stored = region;
  if (turn.mirror) stored.left = upright_width - region.right();
  if (turn.upside_down) stored.top = upright_height - region.bottom();
  if (turn.transpose) return {stored.top, stored.left, stored.height, stored.width};
  return stored;
}

Image upright(const Image& stored, const Region& region, int orientation) {
  const Turn turn = turn_of(orientation);
  Image image(turn.transpose ? region.height : region.width,
              turn.transpose ? region.width : region.height);
  for (int y = 0; y < image.height(); ++y) {
    std::uint8_t* to = image.row(y);
    const int v = turn.upside_down ? image.height() - 1 - y : y;
    for (int x = 0; x < image.width(); ++x, to += Image::kPixelBytes) {
      const int u = turn.mirror ? image.width() - 1 - x : x;
      const int column = region.left + (turn.transpose ? v : u);
      const int row = region.top + (turn.transpose ? u : v);
      std::memcpy(to, stored.row(row) + column * Image::kPixelBytes, Image::kPixelBytes);
    }
  }
  return image;
}

}  // namespace yoke::feed
