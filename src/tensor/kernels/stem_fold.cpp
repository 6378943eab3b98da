#include "yoke/kernels/stem_fold.hpp"

#include <algorithm>

#include <ATen/Functions.h>

#include "device_program.hpp"
#include "stem_fold_args.hpp"

namespace yoke::kernels {
namespace {

constexpr int kFoldThreads = 256;  // as in stem_fold.cuh
constexpr std::int64_t kFolded = 16;

}  // namespace

bool stem_fold_runs(const at::Tensor& x, at::ScalarType dtype) {
  const bool low = dtype == at::kHalf || dtype == at::kBFloat16;
  return low && runs_kernels(x) && x.dim() == 4 && x.numel() > 0 && x.size(1) <= 4 &&
         (x.scalar_type() == at::kFloat || x.scalar_type() == dtype);
}

at::Tensor stem_fold(const at::Tensor& x, const StemFoldOptions& options) {
  at::Tensor out = at::empty({x.size(0), kFolded, options.out_height, options.out_width},
                             at::TensorOptions(x.device())
                                 .dtype(options.dtype)
                                 .memory_format(at::MemoryFormat::ChannelsLast));
  const auto number = [](std::int64_t value) { return static_cast<int>(value); };
  const StemFoldArgs args{.in = x.data_ptr(),
                          .out = out.data_ptr(),
                          .in_is_float = x.scalar_type() == at::kFloat ? 1 : 0,
                          .batch = number(x.size(0)),
                          .channels = number(x.size(1)),
                          .height = number(x.size(2)),
                          .width = number(x.size(3)),
                          .out_height = number(options.out_height),
                          .out_width = number(options.out_width),
                          .padding = number(options.padding),
                          .stride_batch = x.stride(0),
                          .stride_channel = x.stride(1),
                          .stride_height = x.stride(2),
                          .stride_width = x.stride(3)};
  const DeviceFunction function =
      device_function(stem_fold_source(), {options.dtype, 8}, "stem_fold", kFoldThreads);
  const std::int64_t pixels = out.numel() / kFolded;
  const std::int64_t blocks = (pixels + kFoldThreads - 1) / kFoldThreads;
  launch(function, {static_cast<unsigned>(std::min<std::int64_t>(blocks, 1 << 20)), 1}, &args);
  return out;
}

at::Tensor stem_fold_reference(const at::Tensor& x, const StemFoldOptions& options) {
  const at::NoGradGuard no_grad;
  const std::int64_t channels = x.size(1);
  const std::int64_t height = options.out_height;
  const std::int64_t width = options.out_width;
  // Padded, or cut, to the pixels that are looked at.
  const at::Tensor padded = at::constant_pad_nd(
      x.to(options.dtype), {options.padding, 2 * width - x.size(3) - options.padding,
                            options.padding, 2 * height - x.size(2) - options.padding});
  const at::Tensor folded = padded.contiguous()
                                .view({x.size(0), channels, height, 2, width, 2})
                                .permute({0, 3, 5, 1, 2, 4})
                                .reshape({x.size(0), 4 * channels, height, width});
  return at::constant_pad_nd(folded, {0, 0, 0, 0, 0, kFolded - 4 * channels})
      .contiguous(at::MemoryFormat::ChannelsLast);
}

}  // namespace yoke::kernels
