#include "yoke/nn/stem.hpp"

#include <array>

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>

#include "yoke/kernels/stem_fold.hpp"

namespace yoke::nn {
namespace {

constexpr std::int64_t kKernel = 7;
constexpr std::int64_t kPadding = 3;
constexpr std::int64_t kFolded = 16;  // channels, some of them zero

at::ScalarType computed_in(const at::Tensor& x) {
  const bool autocast = x.is_cuda() && at::autocast::is_autocast_enabled(at::kCUDA);
  return autocast ? at::autocast::get_autocast_dtype(at::kCUDA) : x.scalar_type();
}

// [out, channels, 7, 7] -> [out, 16, 4, 4]: tap (2 a + i, 2 b + j) of channel c becomes tap (a, b)
// of channel (2 i + j) * channels + c.
at::Tensor folded_weight(const at::Tensor& weight) {
  const std::int64_t out = weight.size(0);
  const std::int64_t channels = weight.size(1);
  const at::Tensor even = at::constant_pad_nd(weight, {0, 1, 0, 1});
  const at::Tensor folded = even.reshape({out, channels, 4, 2, 4, 2})
                                .permute({0, 3, 5, 1, 2, 4})
                                .reshape({out, 4 * channels, 4, 4});
  return at::constant_pad_nd(folded, {0, 0, 0, 0, 0, kFolded - 4 * channels})
      .contiguous(at::MemoryFormat::ChannelsLast);
}

}  // namespace

at::Tensor stem_convolution(const at::Tensor& x, const at::Tensor& weight) {
  const at::ScalarType dtype = computed_in(x);
  const bool fits = weight.dim() == 4 && weight.size(2) == kKernel && weight.size(3) == kKernel &&
                    x.dim() == 4 && weight.size(1) == x.size(1) && !x.requires_grad() &&
                    x.size(2) > 0 && x.size(3) > 0;
  if (!fits || !kernels::stem_fold_runs(x, dtype)) {
    return at::conv2d(x, weight, {}, {2, 2}, {kPadding, kPadding});
  }
  const auto outputs = [](std::int64_t size) { return (size + 2 * kPadding - kKernel) / 2 + 1; };
  const at::Tensor folded = kernels::stem_fold(x, {.dtype = dtype,
                                                   .padding = kPadding,
                                                   .out_height = outputs(x.size(2)) + 3,
                                                   .out_width = outputs(x.size(3)) + 3});
  constexpr std::array<std::int64_t, 2> kStride{1, 1};
  constexpr std::array<std::int64_t, 2> kNone{0, 0};
  return at::conv2d(folded, folded_weight(weight), {}, kStride, at::IntArrayRef(kNone));
}

}  // namespace yoke::nn
