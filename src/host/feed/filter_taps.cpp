#include "filter_taps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace yoke::feed {
namespace {

constexpr int kMostBits = 20;  // 255 * 2^20 * (1 + bicubic's overshoot) fits 32 bits

double bilinear(double x) { return std::max(0.0, 1.0 - std::abs(x)); }

// Keys' cubic with a = -1/2.
double bicubic(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0;
}

// Pillow's arithmetic, in its order, so that the same pixels take part.
class Sampling {
 public:
  Sampling(const Axis& axis, Interpolation interpolation)
      : interpolation_(interpolation),
        length_(axis.length),
        step_(static_cast<double>(axis.length) / axis.result),
        narrowing_(1.0 / std::max(step_, 1.0)),
        reach_((interpolation == Interpolation::bicubic ? 2.0 : 1.0) * std::max(step_, 1.0)) {
    if (interpolation == Interpolation::nearest) place_nearest(axis.result);
  }

  [[nodiscard]] PixelRange pixels(int output) const {
    if (interpolation_ == Interpolation::nearest) {
      const int pixel = nearest_pixels_[static_cast<std::size_t>(output)];
      return {pixel, pixel + 1};
    }
    const double centre = (output + 0.5) * step_;
    return {std::max(0, static_cast<int>(centre - reach_ + 0.5)),
            std::min(length_, static_cast<int>(centre + reach_ + 0.5))};
  }

  // Adds up to 1; as many as the output has pixels.
  void weights(int output, const PixelRange& pixels, double* out) const {
    switch (interpolation_) {
      case Interpolation::nearest: out[0] = 1; break;
      case Interpolation::bilinear: weigh(bilinear, output, pixels, out); break;
      case Interpolation::bicubic: weigh(bicubic, output, pixels, out); break;
    }
  }

  [[nodiscard]] int most_pixels() const {
    return interpolation_ == Interpolation::nearest ? 1
                                                    : 2 * static_cast<int>(std::ceil(reach_)) + 1;
  }

 private:
  template <class Filter>
  void weigh(const Filter& filter, int output, const PixelRange& pixels, double* out) const {
    const int count = pixels.end - pixels.first;
    const double from_centre = pixels.first + 0.5 - (output + 0.5) * step_;
    double sum = 0;
    for (int i = 0; i < count; ++i) {
      out[i] = filter((from_centre + i) * narrowing_);
      sum += out[i];
    }
    for (int i = 0; i < count && sum != 0; ++i) out[i] /= sum;
  }

  // By adding up steps: rounding decides where a place falls between two pixels.
  void place_nearest(int outputs) {
    double place = step_ * 0.5;
    for (int i = 0; i < outputs; ++i, place += step_) {
      nearest_pixels_.push_back(std::min(static_cast<int>(place), length_ - 1));
    }
  }

  Interpolation interpolation_;
  std::vector<int> nearest_pixels_;
  int length_;
  double step_;
  double narrowing_;
  double reach_;
};

// As many bits as let the largest weight fit 16, with room for what rounding adds to it.
int bits_for(double largest) {
  constexpr int kRoom = 64;
  int bits = 0;
  while (bits < kMostBits &&
         std::ldexp(largest, bits + 1) + kRoom < std::numeric_limits<std::int16_t>::max()) {
    ++bits;
  }
  return bits;
}

// Rounds; what rounding lost or won goes to the largest weight.
void to_integers(std::span<const double> weights, int bits, std::int16_t* out) {
  const double one = 1 << bits;
  int left = 1 << bits;
  std::size_t largest = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double scaled = weights[i] * one;
    out[i] = static_cast<std::int16_t>(scaled + (scaled < 0 ? -0.5 : 0.5));
    left -= out[i];
    if (weights[i] > weights[largest]) largest = i;
  }
  out[largest] = static_cast<std::int16_t>(out[largest] + left);
}

}  // namespace

// Note [Bits]: the weights' bits follow from all outputs, wanted or not, so that a window's pixels
// are those of the whole.
FilterTaps filter_taps(const Axis& axis, Interpolation interpolation) {
  const Sampling sampling(axis, interpolation);
  const PixelRange needed = pixels_needed(axis, interpolation);
  FilterTaps taps;
  taps.origin = needed.first;
  taps.length = needed.end - needed.first;
  taps.count = (sampling.most_pixels() + 3) / 4 * 4;
  const auto count = static_cast<std::size_t>(taps.count);
  std::vector<double> exact(static_cast<std::size_t>(axis.result) * count, 0);
  for (int i = 0; i < axis.result; ++i) {
    sampling.weights(i, sampling.pixels(i), exact.data() + static_cast<std::size_t>(i) * count);
  }
  taps.bits = bits_for(*std::ranges::max_element(exact));
  taps.first.reserve(static_cast<std::size_t>(axis.end - axis.first));
  taps.used.reserve(taps.first.capacity());
  taps.weights.assign(static_cast<std::size_t>(axis.end - axis.first) * count, 0);
  for (int i = axis.first; i < axis.end; ++i) {
    const PixelRange pixels = sampling.pixels(i);
    taps.first.push_back(pixels.first - taps.origin);
    taps.used.push_back(pixels.end - pixels.first);
    to_integers(std::span(exact).subspan(static_cast<std::size_t>(i) * count,
                                         static_cast<std::size_t>(taps.used.back())),
                taps.bits, taps.weights.data() + static_cast<std::size_t>(i - axis.first) * count);
  }
  return taps;
}

PixelRange pixels_needed(const Axis& axis, Interpolation interpolation) {
  const Sampling sampling(axis, interpolation);
  return {sampling.pixels(axis.first).first, sampling.pixels(axis.end - 1).end};
}

}  // namespace yoke::feed
