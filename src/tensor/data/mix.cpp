#include "yoke/data/mix.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>

#include <ATen/Functions.h>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/feed/random.hpp"

namespace yoke::data {
namespace {

// Apart from the streams of the samples.
constexpr std::uint64_t kMixStream = 0x4D69785570437574U;
constexpr std::uint64_t kLotStream = 0x4F6E654F66547730U;

feed::Draws draws_of(std::uint64_t seed, const Batch& batch) {
  return feed::Draws({.seed = seed, .epoch = batch.epoch, .index = batch.index});
}

double normal(feed::Draws& draws) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - draws.uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * draws.uniform());
}

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; below 1 by its
// section 6.
double gamma(double shape, feed::Draws& draws) {
  if (shape < 1) {
    const double lifted = gamma(shape + 1, draws);
    return lifted * std::pow(1.0 - draws.uniform(), 1 / shape);
  }
  const double d = shape - 1.0 / 3.0;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(draws);
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    const double u = 1.0 - draws.uniform();
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

double beta(double alpha, feed::Draws& draws) {
  const double a = gamma(alpha, draws);
  const double b = gamma(alpha, draws);
  return a + b > 0 ? a / (a + b) : 0.5;  // both below the smallest number
}

void check(const char* name, double alpha, std::int64_t num_classes, const Batch& batch) {
  const auto refuse = [&](const std::string& what) {
    throw Error(Code::invalid_argument, core::text(name, ": ", what));
  };
  if (!(alpha > 0)) refuse(core::text("alpha is ", alpha, " (above 0)"));
  if (num_classes < 1) refuse(core::text("the number of classes is ", num_classes));
  if (batch.input.dim() != 4 || !batch.input.is_floating_point())
    refuse("batches are no images of floats [rows, channels, height, width]");
  if (batch.target.dim() != 1 || batch.target.scalar_type() != at::kLong)
    refuse("targets are no classes [rows] int64");
}

at::Tensor neighbours(const at::Tensor& rows) { return rows.roll(1, 0); }

// [rows, num_classes]: `part` of the own class, the rest of the neighbour's.
at::Tensor mixed_target(const at::Tensor& target, std::int64_t num_classes, double part) {
  const at::Tensor own = at::one_hot(target, num_classes).to(at::kFloat);
  return own * part + neighbours(own) * (1 - part);
}

}  // namespace

void MixUp::operator()(Batch& batch) const {
  check("MixUp", alpha, num_classes, batch);
  feed::Draws draws = draws_of(seed ^ kMixStream, batch);
  const double part = beta(alpha, draws);
  const at::NoGradGuard no_grad;
  batch.input = neighbours(batch.input).mul_(1 - part).add_(batch.input, part);
  batch.target = mixed_target(batch.target, num_classes, part);
}

void CutMix::operator()(Batch& batch) const {
  check("CutMix", alpha, num_classes, batch);
  feed::Draws draws = draws_of(seed ^ kMixStream, batch);
  const double part = beta(alpha, draws);
  const std::int64_t height = batch.input.size(2);
  const std::int64_t width = batch.input.size(3);
  const double half = 0.5 * std::sqrt(1 - part);
  const auto span = [&](std::int64_t side) {
    const auto middle = static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(side)));
    const auto reach = static_cast<std::int64_t>(half * static_cast<double>(side));
    return std::pair{std::max<std::int64_t>(middle - reach, 0), std::min(middle + reach, side)};
  };
  const auto [left, right] = span(width);
  const auto [top, bottom] = span(height);
  const at::NoGradGuard no_grad;
  const at::Tensor others = neighbours(batch.input);
  at::Tensor mixed = batch.input.clone();
  const auto window = [top, bottom, left, right](const at::Tensor& images) {
    return images.slice(2, top, bottom).slice(3, left, right);
  };
  window(mixed).copy_(window(others));
  batch.input = mixed;
  const double taken =
      static_cast<double>((right - left) * (bottom - top)) / static_cast<double>(width * height);
  batch.target = mixed_target(batch.target, num_classes, 1 - taken);
}

void MixUpOrCutMix::operator()(Batch& batch) const {
  feed::Draws lot = draws_of(mix_up.seed ^ kLotStream, batch);
  lot.uniform() < 0.5 ? mix_up(batch) : cut_mix(batch);
}

}  // namespace yoke::data
