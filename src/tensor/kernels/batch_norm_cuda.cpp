#include <algorithm>
#include <bit>
#include <utility>

#include <ATen/Functions.h>

#include "batch_norm_args.hpp"
#include "device_program.hpp"
#include "yoke/kernels/batch_norm.hpp"

namespace yoke::kernels {
namespace {

// As in batch_norm.cuh.
constexpr int kReduceThreads = 512;
constexpr int kApplyThreads = 256;
constexpr std::int64_t kUnroll = 4;

constexpr auto kLayout = at::MemoryFormat::ChannelsLast;

template <class T>
T* pointer(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<T>() : nullptr;
}
void* address(const at::Tensor& tensor) { return tensor.defined() ? tensor.data_ptr() : nullptr; }

// Dense in channels-last order, of x's dtype.
at::Tensor as_rows(const at::Tensor& tensor, const at::Tensor& x) {
  return tensor.defined() ? tensor.to(x.scalar_type()).contiguous(kLayout) : tensor;
}

at::Tensor floats(std::int64_t count, const at::Tensor& x) {
  return at::empty({count}, x.options().dtype(at::kFloat).memory_format(std::nullopt));
}

std::int64_t bytes_of(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<std::int64_t>(tensor.nbytes()) : 0;
}

/// A tile of 128 bytes a row. Wider ones leave fewer tiles, so that more blocks share each and the
/// last of them has more partial sums to add: ResNet-50's step took 31.9 ms with 32, 30.7 with 16,
/// 30.5 with 8 and 33.0 with 4 (batch 256; 7.8, 6.7, 6.2, 6.2 at batch 32).
constexpr std::int64_t kMostLanes = 8;

/// The launches of one call: which tiles there are and how many blocks share each.
class Launcher {
 public:
  Launcher(const at::Tensor& x, const BatchNormState& state, const BatchNormOptions& options)
      : type_(element_type(x, x.size(1))), x_(x) {
    const std::int64_t vectors = x.size(1) / type_.vector;
    args.rows = x.numel() / x.size(1);
    args.channels = static_cast<int>(x.size(1));
    args.lane_bits =
        std::bit_width(std::bit_ceil(static_cast<unsigned>(std::min(kMostLanes, vectors)))) - 1;
    tiles_ = (vectors + lanes() - 1) / lanes();
    args.x = address(x);
    args.weight = pointer<float>(state.weight);
    args.bias = pointer<float>(state.bias);
    args.eps = static_cast<float>(options.eps);
    args.momentum = static_cast<float>(options.momentum);
  }

  [[nodiscard]] const ElementType& type() const noexcept { return type_; }

  /// Sums over rows: blocks of a tile meet at a counter, the last one adds up what all found.
  void reduce(const char* name) {
    const DeviceFunction function = find(name, kReduceThreads);
    const Grid grid = grid_of(function, kUnroll);
    const std::int64_t sums = 2 * type_.vector * lanes();
    const at::Tensor partial = floats(grid.x * static_cast<std::int64_t>(grid.y) * sums, x_);
    args.partial = partial.data_ptr<float>();
    args.arrived = arrival_counters(tiles_);
    launch(function, grid, &args);
  }

  void apply(const char* name) {
    const DeviceFunction function = find(name, kApplyThreads);
    launch(function, grid_of(function, 1), &args);
  }

  BatchNormArgs args{};

 private:
  [[nodiscard]] std::int64_t lanes() const { return std::int64_t{1} << args.lane_bits; }

  [[nodiscard]] DeviceFunction find(const char* name, int threads) const {
    return device_function(batch_norm_source(), type_, name, threads);
  }

  /// As many blocks as the device holds at once, each with `rows_each` rows a thread or more.
  [[nodiscard]] Grid grid_of(const DeviceFunction& function, std::int64_t rows_each) const {
    const std::int64_t height = (function.threads >> args.lane_bits) * rows_each;
    const std::int64_t useful = (args.rows + height - 1) / height;
    const std::int64_t held = std::max<std::int64_t>(1, function.blocks_at_once / tiles_);
    return {static_cast<unsigned>(tiles_),
            static_cast<unsigned>(std::min({useful, held, std::int64_t{65535}}))};
  }

  ElementType type_;
  const at::Tensor& x_;
  std::int64_t tiles_ = 1;
};

const char* forward_name(bool relu, bool residual) {
  if (residual) return relu ? "forward_add_relu" : "forward_add";
  return relu ? "forward_relu" : "forward_plain";
}

bool is_float_or_absent(const at::Tensor& tensor) {
  return !tensor.defined() || (tensor.scalar_type() == at::kFloat && tensor.is_contiguous());
}

}  // namespace

bool batch_norm_runs(const at::Tensor& x, const BatchNormState& state) {
  const auto dtype = x.scalar_type();
  return runs_kernels(x) && x.dim() == 4 && x.size(1) > 0 && x.numel() >= 2 * x.size(1) &&
         (dtype == at::kBFloat16 || dtype == at::kHalf || dtype == at::kFloat) &&
         x.is_contiguous(kLayout) && is_float_or_absent(state.weight) &&
         is_float_or_absent(state.bias) && is_float_or_absent(state.running_mean) &&
         is_float_or_absent(state.running_var);
}

BatchNormForward batch_norm_forward(const at::Tensor& x, const at::Tensor& residual,
                                    const BatchNormState& state, const BatchNormOptions& options) {
  const at::Tensor added = as_rows(residual, x);
  Launcher kernels(x, state, options);
  BatchNormForward out{.y = at::empty_like(x),
                       .mean = floats(x.size(1), x),
                       .invstd = floats(x.size(1), x),
                       .mask = {}};
  if (options.relu && added.defined()) {
    out.mask = at::empty({x.numel() / kernels.type().vector},
                         x.options().dtype(at::kByte).memory_format(std::nullopt));
  }
  kernels.args.residual = address(added);
  kernels.args.out = address(out.y);
  kernels.args.mask = pointer<std::uint8_t>(out.mask);
  kernels.args.mean = pointer<float>(out.mean);
  kernels.args.invstd = pointer<float>(out.invstd);
  if (state.running_mean.defined() && state.running_var.defined()) {
    kernels.args.running_mean = pointer<float>(state.running_mean);
    kernels.args.running_var = pointer<float>(state.running_var);
  }
  static_assert(sizeof(long long) == sizeof(std::int64_t));
  kernels.args.batches = static_cast<long long*>(address(state.num_batches_tracked));
  kernels.reduce("statistics");
  kernels.apply(forward_name(options.relu, added.defined()));
  const std::int64_t passes = added.defined() ? 4 : 3;
  count_traffic({.norm = passes * bytes_of(x) + bytes_of(out.mask)});
  return out;
}

BatchNormBackward batch_norm_backward(const at::Tensor& dy, const at::Tensor& dy2,
                                      const at::Tensor& x, const BatchNormForward& forward,
                                      const BatchNormState& state, const BatchNormOptions& options,
                                      bool had_residual) {
  const bool keeps_passed = options.relu && had_residual;
  at::Tensor gradient = as_rows(dy, x);
  at::Tensor second = as_rows(dy2, x);
  if (second.defined() && !keeps_passed) gradient = gradient + std::exchange(second, {});
  const std::int64_t channels = x.size(1);
  Launcher kernels(x, state, options);
  BatchNormBackward out{.dx = at::empty_like(x),
                        .dweight = floats(channels, x),
                        .dbias = floats(channels, x),
                        .dresidual = {}};
  if (had_residual) out.dresidual = keeps_passed ? at::empty_like(x) : gradient;
  const at::Tensor factors = floats(2 * channels, x);
  kernels.args.dy = address(gradient);
  kernels.args.dy2 = address(second);
  kernels.args.out = address(out.dx);
  kernels.args.dresidual = address(out.dresidual);
  kernels.args.mask = pointer<std::uint8_t>(forward.mask);
  kernels.args.mean = pointer<float>(forward.mean);
  kernels.args.invstd = pointer<float>(forward.invstd);
  kernels.args.dweight = pointer<float>(out.dweight);
  kernels.args.dbias = pointer<float>(out.dbias);
  kernels.args.factors = pointer<float>(factors);
  kernels.reduce(keeps_passed ? "sums_add_relu" : (options.relu ? "sums_relu" : "sums_plain"));
  if (keeps_passed) kernels.args.dy = address(out.dresidual);
  kernels.apply(options.relu && !keeps_passed ? "backward_relu" : "backward_plain");
  const std::int64_t passes = 5 + (keeps_passed ? 1 : 0) + (second.defined() ? 1 : 0);
  count_traffic({.norm = passes * bytes_of(x) + bytes_of(forward.mask)});
  return out;
}

}  // namespace yoke::kernels
