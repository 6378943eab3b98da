#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace yoke::feed {

/// A rectangle of pixels.
struct Region {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;

  [[nodiscard]] int right() const noexcept { return left + width; }
  [[nodiscard]] int bottom() const noexcept { return top + height; }
  friend bool operator==(const Region&, const Region&) = default;
};

/// An image in memory: rows of pixels of four bytes, red, green, blue and one without meaning, so
/// that vector instructions take whole pixels.
///
///   Image image(640, 480);
///   image.row(0)[4 * 17 + 1] = 255;  // green of the pixel 17 to the right
///
/// Threads: a value; one thread at a time.
class Image {
 public:
  static constexpr int kPixelBytes = 4;

  Image() = default;
  Image(int width, int height) { reshape(width, height); }

  /// Another size; the content is then any. Keeps memory that is large enough.
  void reshape(int width, int height) {
    width_ = width;
    height_ = height;
    bytes_.resize(static_cast<std::size_t>(height) * row_bytes() + kSlack);
  }

  [[nodiscard]] int width() const noexcept { return width_; }
  [[nodiscard]] int height() const noexcept { return height_; }
  [[nodiscard]] Region whole() const noexcept { return {0, 0, width_, height_}; }
  [[nodiscard]] std::size_t row_bytes() const noexcept {
    return static_cast<std::size_t>(width_) * kPixelBytes;
  }

  /// Bytes that it holds, for this image or a larger one before.
  [[nodiscard]] std::size_t memory() const noexcept { return bytes_.capacity(); }

  /// Requires: 0 <= y < height().
  [[nodiscard]] std::uint8_t* row(int y) noexcept {
    return bytes_.data() + static_cast<std::size_t>(y) * row_bytes();
  }
  [[nodiscard]] const std::uint8_t* row(int y) const noexcept {
    return bytes_.data() + static_cast<std::size_t>(y) * row_bytes();
  }

 private:
  static constexpr std::size_t kSlack = 64;  // a vector load may reach beyond the last pixel

  int width_ = 0;
  int height_ = 0;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace yoke::feed
