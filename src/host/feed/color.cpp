#include "color.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace yoke::feed {
namespace {

using Pixel = std::uint8_t*;

// For each pixel of the image.
template <class Change>
void each_pixel(Image& image, const Change& change) {
  for (int y = 0; y < image.height(); ++y) {
    Pixel pixel = image.row(y);
    for (int x = 0; x < image.width(); ++x, pixel += Image::kPixelBytes) change(pixel);
  }
}

// ITU-R 601-2 luma in 16-bit fractions.
unsigned gray(const std::uint8_t* pixel) {
  return (pixel[0] * 19595U + pixel[1] * 38470U + pixel[2] * 7471U + 0x8000U) >> 16;
}

std::uint8_t mixed(int dull, int value, float factor) {
  const float sum = static_cast<float>(dull) + factor * static_cast<float>(value - dull);
  return static_cast<std::uint8_t>(std::clamp(sum, 0.0F, 255.0F));
}

void mix(Pixel pixel, int dull, float factor) {
  for (int channel = 0; channel < 3; ++channel) {
    pixel[channel] = mixed(dull, pixel[channel], factor);
  }
}

int mean_gray(Image& image) {
  double sum = 0;
  each_pixel(image, [&](Pixel pixel) { sum += gray(pixel); });
  return static_cast<int>(sum / (static_cast<double>(image.width()) * image.height()) + 0.5);
}

struct Hsv {
  std::uint8_t hue;
  std::uint8_t saturation;
  std::uint8_t value;
};

std::uint8_t byte(double part) {
  return static_cast<std::uint8_t>(std::clamp(static_cast<int>(part * 255.0), 0, 255));
}

Hsv to_hsv(const std::uint8_t* pixel) {
  const int red = pixel[0];
  const int green = pixel[1];
  const int blue = pixel[2];
  const int most = std::max({red, green, blue});
  const int least = std::min({red, green, blue});
  if (most == least) return {0, 0, static_cast<std::uint8_t>(most)};
  const auto range = static_cast<float>(most - least);
  const float from_red = static_cast<float>(most - red) / range;
  const float from_green = static_cast<float>(most - green) / range;
  const float from_blue = static_cast<float>(most - blue) / range;
  float sixth = 4.0F + from_green - from_red;
  if (green == most) sixth = 2.0F + from_red - from_blue;
  if (red == most) sixth = from_blue - from_green;
  const double hue = std::fmod(sixth / 6.0 + 1.0, 1.0);
  return {byte(hue), byte(range / static_cast<float>(most)), static_cast<std::uint8_t>(most)};
}

std::uint8_t rounded(float value) {
  return static_cast<std::uint8_t>(std::clamp(std::lround(value), 0L, 255L));
}

void from_hsv(const Hsv& hsv, Pixel pixel) {
  const float place = static_cast<float>(hsv.hue) * 6.0F / 255.0F;
  const float saturation = static_cast<float>(hsv.saturation) / 255.0F;
  const int sixth = static_cast<int>(place);
  const float within = place - static_cast<float>(sixth);
  const auto value = static_cast<float>(hsv.value);
  const std::uint8_t v = hsv.value;
  const std::uint8_t p = rounded(value * (1.0F - saturation));
  const std::uint8_t q = rounded(value * (1.0F - saturation * within));
  const std::uint8_t t = rounded(value * (1.0F - saturation * (1.0F - within)));
  const std::array<std::array<std::uint8_t, 3>, 6> sixths{
      {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}}};
  std::ranges::copy(sixths[static_cast<std::size_t>(sixth % 6)], pixel);
}

}  // namespace

void adjust_brightness(Image& image, double factor) {
  each_pixel(image, [&](Pixel pixel) { mix(pixel, 0, static_cast<float>(factor)); });
}

void adjust_contrast(Image& image, double factor) {
  const int dull = mean_gray(image);
  each_pixel(image, [&](Pixel pixel) { mix(pixel, dull, static_cast<float>(factor)); });
}

void adjust_saturation(Image& image, double factor) {
  each_pixel(image, [&](Pixel pixel) {
    mix(pixel, static_cast<int>(gray(pixel)), static_cast<float>(factor));
  });
}

void mix(Image& image, const Image& dull, double factor) {
  for (int y = 0; y < image.height(); ++y) {
    Pixel pixel = image.row(y);
    const std::uint8_t* other = dull.row(y);
    for (int x = 0; x < image.width(); ++x) {
      for (int channel = 0; channel < 3; ++channel)
        pixel[channel] = mixed(other[channel], pixel[channel], static_cast<float>(factor));
      pixel += Image::kPixelBytes;
      other += Image::kPixelBytes;
    }
  }
}

void adjust_hue(Image& image, double turn) {
  const auto steps = static_cast<std::uint8_t>(static_cast<int>(turn * 255));  // modulo the circle
  each_pixel(image, [&](Pixel pixel) {
    Hsv hsv = to_hsv(pixel);
    hsv.hue = static_cast<std::uint8_t>(hsv.hue + steps);
    from_hsv(hsv, pixel);
  });
}

}  // namespace yoke::feed
