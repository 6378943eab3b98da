#include <algorithm>
#include <string>

#include <ATen/Functions.h>

#include "device_program.hpp"
#include "max_pool_args.hpp"
#include "yoke/kernels/max_pool.hpp"

namespace yoke::kernels {
namespace {

constexpr int kPoolThreads = 256;                              // as in max_pool.cuh
constexpr std::int64_t kMostElements = std::int64_t{1} << 31;  // kernels count in 32 bits
constexpr auto kLayout = at::MemoryFormat::ChannelsLast;

std::int64_t pooled(std::int64_t size, const MaxPoolOptions& options) {
  return (size + 2 * options.padding - options.kernel_size) / options.stride + 1;
}

MaxPoolArgs args_of(at::IntArrayRef x, const MaxPoolOptions& options) {
  const auto number = [](std::int64_t value) { return static_cast<int>(value); };
  return {.batch = number(x[0]),
          .height = number(x[2]),
          .width = number(x[3]),
          .channels = number(x[1]),
          .out_height = number(pooled(x[2], options)),
          .out_width = number(pooled(x[3], options)),
          .kernel = number(options.kernel_size),
          .stride = number(options.stride),
          .padding = number(options.padding),
          .in = nullptr,
          .out = nullptr,
          .winner = nullptr};
}

// ResNets' window, which has kernels of its own.
bool is_resnets(const MaxPoolArgs& args) {
  return args.kernel == 3 && args.stride == 2 && args.padding == 1;
}

// The larger and the smaller side once each, and a byte of index for each of the smaller.
Traffic traffic_of(const at::Tensor& large, const at::Tensor& small) {
  return {.pooling = static_cast<std::int64_t>(large.nbytes() + small.nbytes()) + small.numel()};
}

void run(const std::string& name, const at::Tensor& sample, const MaxPoolArgs& args,
         std::int64_t numel) {
  const ElementType type = element_type(sample, args.channels);
  const std::string full = is_resnets(args) ? name + "_3_2_1" : name;
  const DeviceFunction function =
      device_function(max_pool_source(), type, full.c_str(), kPoolThreads);
  const std::int64_t blocks = (numel / type.vector + kPoolThreads - 1) / kPoolThreads;
  launch(function, {static_cast<unsigned>(std::min<std::int64_t>(blocks, 1 << 20)), 1}, &args);
}

}  // namespace

bool max_pool_runs(const at::Tensor& x, const MaxPoolOptions& options) {
  const auto dtype = x.scalar_type();
  return runs_kernels(x) && x.dim() == 4 && x.numel() > 0 && x.numel() <= kMostElements &&
         x.is_contiguous(kLayout) &&
         (dtype == at::kBFloat16 || dtype == at::kHalf || dtype == at::kFloat) &&
         options.kernel_size > 0 && options.kernel_size <= 15 && options.stride > 0 &&
         options.padding >= 0 && 2 * options.padding <= options.kernel_size &&
         pooled(x.size(2), options) > 0 && pooled(x.size(3), options) > 0;
}

MaxPoolForward max_pool_forward(const at::Tensor& x, const MaxPoolOptions& options) {
  MaxPoolArgs args = args_of(x.sizes(), options);
  const std::vector<std::int64_t> shape{x.size(0), x.size(1), args.out_height, args.out_width};
  MaxPoolForward out{
      .y = at::empty(shape, x.options().memory_format(kLayout)),
      .winner = at::empty(shape, x.options().dtype(at::kByte).memory_format(kLayout))};
  args.in = x.data_ptr();
  args.out = out.y.data_ptr();
  args.winner = out.winner.data_ptr<std::uint8_t>();
  run("max_pool_forward", x, args, out.y.numel());
  count_traffic(traffic_of(x, out.y));
  return out;
}

at::Tensor max_pool_backward(const at::Tensor& dy, const at::Tensor& winner, at::IntArrayRef shape,
                             const MaxPoolOptions& options) {
  const at::Tensor gradient = dy.contiguous(kLayout);
  at::Tensor dx = at::empty(shape, dy.options().memory_format(kLayout));
  MaxPoolArgs args = args_of(shape, options);
  args.in = gradient.data_ptr();
  args.out = dx.data_ptr();
  args.winner = winner.data_ptr<std::uint8_t>();
  const std::int64_t squares = (shape[2] + 1) / 2 * ((shape[3] + 1) / 2);
  run("max_pool_backward", dx, args, is_resnets(args) ? shape[0] * shape[1] * squares : dx.numel());
  count_traffic(traffic_of(dx, gradient));
  return dx;
}

}  // namespace yoke::kernels
