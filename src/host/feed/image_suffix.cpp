#include "image_suffix.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "codec.hpp"

namespace yoke::feed {

std::string lower_suffix(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {};
  std::string suffix(name.substr(dot + 1));
  std::ranges::transform(suffix, suffix.begin(), [](unsigned char c) {
    return static_cast<char>(c < 128 ? std::tolower(c) : c);
  });
  return suffix;
}

bool is_image_suffix(std::string_view lower_case) {
  constexpr std::array<std::string_view, 3> kKnown{"jpg", "jpeg", "png"};
  return std::ranges::find(kKnown, lower_case) != kKnown.end() ||
         (lower_case == "webp" && has_webp());
}

bool is_foreign_image_suffix(std::string_view lower_case) {
  constexpr std::array<std::string_view, 5> kForeign{"bmp", "ppm", "pgm", "tif", "tiff"};
  return std::ranges::find(kForeign, lower_case) != kForeign.end() ||
         (lower_case == "webp" && !has_webp());
}

std::string image_suffixes_text() {
  return has_webp() ? ".jpg, .jpeg, .png, .webp" : ".jpg, .jpeg, .png";
}

}  // namespace yoke::feed
