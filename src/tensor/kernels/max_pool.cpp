#include "yoke/kernels/max_pool.hpp"

#include <ATen/Functions.h>

namespace yoke::kernels {
namespace {

// Where y's elements come from: the row (or column) of the window's place in x.
at::Tensor source(const at::Tensor& place, std::int64_t outputs, const MaxPoolOptions& options,
                  bool row) {
  const at::Tensor start =
      at::arange(outputs, place.options().dtype(at::kLong)) * options.stride - options.padding;
  return start.view(row ? at::IntArrayRef{outputs, 1} : at::IntArrayRef{1, outputs}) + place;
}

// Of each element of y: its winner's index in the image's plane.
at::Tensor plane_index(const at::Tensor& winner, std::int64_t width,
                       const MaxPoolOptions& options) {
  const at::Tensor place = winner.to(at::kLong);
  const at::Tensor row = at::floor_divide(place, options.kernel_size);
  const at::Tensor column = at::remainder(place, options.kernel_size);
  return source(row, winner.size(2), options, true) * width +
         source(column, winner.size(3), options, false);
}

}  // namespace

MaxPoolForward max_pool_forward_reference(const at::Tensor& x, const MaxPoolOptions& options) {
  const at::NoGradGuard no_grad;
  const std::int64_t k = options.kernel_size;
  auto [y, index] = at::max_pool2d_with_indices(x, {k, k}, {options.stride, options.stride},
                                                {options.padding, options.padding});
  const at::Tensor zero = at::zeros({1, 1}, index.options());
  const at::Tensor row =
      at::floor_divide(index, x.size(3)) - source(zero, y.size(2), options, true);
  const at::Tensor column =
      at::remainder(index, x.size(3)) - source(zero, y.size(3), options, false);
  return {.y = y, .winner = (row * k + column).to(at::kByte)};
}

at::Tensor max_pool_backward_reference(const at::Tensor& dy, const at::Tensor& winner,
                                       at::IntArrayRef shape, const MaxPoolOptions& options) {
  const at::NoGradGuard no_grad;
  at::Tensor dx =
      at::zeros({shape[0], shape[1], shape[2] * shape[3]}, dy.options().dtype(at::kDouble));
  dx.scatter_add_(2, plane_index(winner, shape[3], options).flatten(2),
                  dy.to(at::kDouble).flatten(2));
  return dx.view(shape).to(dy.scalar_type());
}

}  // namespace yoke::kernels
