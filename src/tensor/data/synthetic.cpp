#include "yoke/data/synthetic.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "fingerprint.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/feed/random.hpp"

namespace yoke::data {
namespace {

// Streams of random numbers of their own, beside those of the samples (0).
constexpr std::int64_t kPatternStream = 1;
constexpr std::int64_t kNoiseStream = 2;
constexpr std::int64_t kClassStream = 3;

std::int64_t product(const std::vector<std::int64_t>& sizes) {
  std::int64_t all = 1;
  for (const std::int64_t size : sizes) all *= size;
  return all;
}

// `count` numbers of mean 0 and variance 1 (Box and Muller, 1958).
std::vector<float> normals(std::uint64_t seed, std::int64_t stream, std::int64_t count) {
  feed::Draws draws({.seed = seed, .epoch = stream, .index = 0});
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - draws.uniform()));
    value = static_cast<float>(radius * std::cos(2.0 * std::numbers::pi * draws.uniform()));
  }
  return values;
}

SyntheticOptions checked(SyntheticOptions options) {
  const bool bad_shape = std::ranges::any_of(options.shape, [](auto size) { return size < 1; });
  if (bad_shape || options.classes < 1 || options.length < 1) {
    throw Error(
        Code::invalid_argument,
        core::text("make synthetic data: ", options.length, " samples of ", options.classes,
                   " classes", bad_shape ? ", and a size of the shape is" : "", " (1 or more)"));
  }
  return options;
}

}  // namespace

// Note [Synthetic banks]
// A pattern is a window of one bank of normal numbers, at a place that the class decides; the noise
// is a window of another, at a place that the sample decides. Windows at different places are
// nearly uncorrelated, so 1000 classes cost no more memory than 10, and a sample one addition an
// element.
struct Synthetic::Banks {
  Banks(std::uint64_t seed, std::int64_t elements)
      : patterns(normals(seed, kPatternStream, 2 * elements)),
        noise(normals(seed, kNoiseStream, 2 * elements)) {}

  std::vector<float> patterns;
  std::vector<float> noise;
};

Synthetic::Synthetic(SyntheticOptions options)
    : options_(checked(std::move(options))),
      elements_(product(options_.shape)),
      banks_(std::make_shared<const Banks>(options_.seed, elements_)) {}

SampleLayout Synthetic::layout() const { return {.input_sizes = options_.shape}; }

void Synthetic::fill(const Request& request, const Rows& rows) const {
  const auto places = static_cast<std::uint64_t>(elements_) + 1;
  auto* out = rows.input.mutable_data_ptr<float>();
  auto* labels = rows.target.mutable_data_ptr<std::int64_t>();
  for (const std::int64_t index : request.indices) {
    feed::Draws sample({.seed = options_.seed, .epoch = 0, .index = index});
    const auto label =
        static_cast<std::int64_t>(sample.below(static_cast<std::uint64_t>(options_.classes)));
    feed::Draws of_class({.seed = options_.seed, .epoch = kClassStream, .index = label});
    const float* pattern = banks_->patterns.data() + of_class.below(places);
    const float* noise = banks_->noise.data() + sample.below(places);
    for (std::int64_t i = 0; i < elements_; ++i) out[i] = pattern[i] + noise[i];
    *labels++ = label;
    out += elements_;
  }
}

std::int64_t Synthetic::rows_at_once() const {
  constexpr std::int64_t kElementsAtOnce = 64 * 1024;  // some 20 us
  return std::max<std::int64_t>(1, kElementsAtOnce / elements_);
}

std::uint64_t Synthetic::fingerprint() const {
  const std::array<std::int64_t, 3> numbers{options_.classes, options_.length,
                                            static_cast<std::int64_t>(options_.seed)};
  return fingerprint_of(numbers, fingerprint_of(options_.shape));
}

}  // namespace yoke::data
