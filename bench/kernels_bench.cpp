// Times the kernels of room `kernels` on the shapes of a ResNet-50 step, against the card's own
// copy bandwidth.
//
//   yoke-bench-kernels [--batch 256] [--dtype bf16|fp16|fp32]
//
// Each result is compared with the reference by plain operations before it is timed. One JSON
// object a line: name, milliseconds, bytes that must be moved, GB/s and its share of the copy
// bandwidth. Inputs rotate over more memory than the L2 cache holds; what a second pass finds there
// is the kernels' own doing.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <ATen/Functions.h>

#include "yoke/comm/device.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/kernels/kernels.hpp"

namespace {

using namespace yoke::kernels;
using Clock = std::chrono::steady_clock;
using yoke::core::text;

const at::Device kCard(at::kCUDA, 0);
constexpr std::int64_t kRotated = 400 << 20;  // bytes

/// Median milliseconds of a call that is given the number of the input set to use.
double time_of(std::size_t sets, const std::function<void(std::size_t)>& call) {
  constexpr int kBlocks = 7;
  const int calls = static_cast<int>(std::max<std::size_t>(10, sets));
  for (int i = 0; i < calls; ++i) call(static_cast<std::size_t>(i) % sets);
  yoke::comm::synchronize(kCard);
  std::vector<double> blocks;
  for (int block = 0; block < kBlocks; ++block) {
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) call(static_cast<std::size_t>(i) % sets);
    yoke::comm::synchronize(kCard);
    const std::chrono::duration<double, std::milli> passed = Clock::now() - begin;
    blocks.push_back(passed.count() / calls);
  }
  std::nth_element(blocks.begin(), blocks.begin() + kBlocks / 2, blocks.end());
  return blocks[kBlocks / 2];
}

double copy_gigabytes_per_second() {
  const at::Tensor from = at::randn({1 << 28}, at::TensorOptions(kCard).dtype(at::kFloat));
  at::Tensor to = at::empty_like(from);
  const double ms = time_of(1, [&](std::size_t) { to.copy_(from); });
  return 2.0 * static_cast<double>(from.nbytes()) / ms / 1e6;
}

class Report {
 public:
  explicit Report(double copy) : copy_(copy) {
    std::printf("{\"name\": \"copy\", \"gigabytes_per_second\": %.0f}\n", copy_);
  }
  void row(const std::string& name, double ms, double bytes) const {
    const double rate = bytes / ms / 1e6;
    std::printf(
        "{\"name\": \"%s\", \"ms\": %.4f, \"megabytes\": %.1f, \"gigabytes_per_second\": %.0f, "
        "\"of_copy\": %.3f}\n",
        name.c_str(), ms, bytes / 1e6, rate, rate / copy_);
  }

 private:
  double copy_;
};

void require_close(const std::string& what, const at::Tensor& a, const at::Tensor& b,
                   double tolerance) {
  const at::Tensor wide = b.to(at::kDouble);
  const double error = ((a.to(at::kDouble) - wide).norm() / wide.norm()).item<double>();
  if (error <= tolerance) return;
  throw yoke::Error(yoke::Code::internal,
                    text(what, " is off by ", error, ", more than ", tolerance));
}

struct NormShape {
  std::int64_t channels;
  std::int64_t side;
  bool relu;
  bool residual;
};

void time_norm(const Report& report, std::int64_t batch, at::ScalarType dtype,
               const NormShape& shape) {
  const auto on =
      at::TensorOptions(kCard).dtype(dtype).memory_format(at::MemoryFormat::ChannelsLast);
  const auto make = [&] {
    return at::randn({batch, shape.channels, shape.side, shape.side},
                     on.memory_format(std::nullopt))
        .contiguous(at::MemoryFormat::ChannelsLast);
  };
  const auto vector = at::TensorOptions(kCard).dtype(at::kFloat);
  const BatchNormState state{.weight = at::rand({shape.channels}, vector) + 0.5,
                             .bias = at::randn({shape.channels}, vector),
                             .running_mean = at::zeros({shape.channels}, vector),
                             .running_var = at::ones({shape.channels}, vector),
                             .num_batches_tracked = at::zeros({}, vector.dtype(at::kLong))};
  const BatchNormOptions options{.relu = shape.relu};
  struct Set {
    at::Tensor x, residual, dy;
    BatchNormForward forward;
  };
  std::vector<Set> sets;
  std::int64_t bytes = 0;
  while (bytes < kRotated || sets.empty()) {
    Set set{make(), shape.residual ? make() : at::Tensor(), make(), {}};
    set.forward = batch_norm_forward(set.x, set.residual, state, options);
    bytes += static_cast<std::int64_t>(4 * set.x.nbytes());
    sets.push_back(std::move(set));
  }
  {
    Set& set = sets[0];
    const auto reference = batch_norm_forward_reference(set.x, set.residual, state, options);
    const double tolerance = dtype == at::kFloat ? 1e-5 : 1e-2;
    require_close("y", set.forward.y, reference.y, tolerance);
    const auto mine =
        batch_norm_backward(set.dy, {}, set.x, set.forward, state, options, shape.residual);
    const auto theirs =
        batch_norm_backward_reference(set.dy, {}, set.x, reference, state, options, shape.residual);
    require_close("dx", mine.dx, theirs.dx, tolerance);
    require_close("dweight", mine.dweight, theirs.dweight, 1e-2);
  }
  const std::string name =
      text("batch_norm", shape.residual ? "_add" : "", shape.relu ? "_relu" : "", " ",
           shape.channels, "x", shape.side, "x", shape.side, " b", batch);
  const auto pass = static_cast<double>(sets[0].x.nbytes());
  const double extra = shape.residual ? 1 : 0;
  const double forward_ms = time_of(sets.size(), [&](std::size_t i) {
    sets[i].forward = batch_norm_forward(sets[i].x, sets[i].residual, state, options);
  });
  report.row(name + " forward", forward_ms, (3 + extra) * pass);
  const double backward_ms = time_of(sets.size(), [&](std::size_t i) {
    (void)batch_norm_backward(sets[i].dy, {}, sets[i].x, sets[i].forward, state, options,
                              shape.residual);
  });
  report.row(name + " backward", backward_ms, (5 + extra) * pass);
}

void time_pool(const Report& report, std::int64_t batch, at::ScalarType dtype) {
  const at::Tensor x = at::randn({batch, 64, 112, 112}, at::TensorOptions(kCard).dtype(dtype))
                           .contiguous(at::MemoryFormat::ChannelsLast);
  const MaxPoolOptions options{.kernel_size = 3, .stride = 2, .padding = 1};
  const MaxPoolForward forward = max_pool_forward(x, options);
  const at::Tensor dy = at::randn_like(forward.y);
  if (!forward.y.equal(max_pool_forward_reference(x, options).y)) {
    throw yoke::Error(yoke::Code::internal, "max pooling differs from torch's");
  }
  require_close("dx of max pooling", max_pool_backward(dy, forward.winner, x.sizes(), options),
                max_pool_backward_reference(dy, forward.winner, x.sizes(), options), 1e-2);
  const auto bytes = static_cast<double>(x.nbytes() + forward.y.nbytes() + forward.winner.nbytes());
  report.row(text("max_pool b", batch, " forward"),
             time_of(1, [&](std::size_t) { (void)max_pool_forward(x, options); }), bytes);
  report.row(
      text("max_pool b", batch, " backward"),
      time_of(
          1, [&](std::size_t) { (void)max_pool_backward(dy, forward.winner, x.sizes(), options); }),
      bytes);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::map<std::string, std::string> given;
    for (int i = 1; i + 1 < argc; i += 2) given[argv[i]] = argv[i + 1];
    const std::int64_t batch =
        given.count("--batch") ? yoke::core::parse_integer(given["--batch"]).value() : 256;
    const std::string dtype = given.count("--dtype") ? given["--dtype"] : "bf16";
    const at::ScalarType type =
        dtype == "fp32" ? at::kFloat : (dtype == "fp16" ? at::kHalf : at::kBFloat16);
    if (yoke::comm::cuda_device_count() == 0) {
      throw yoke::Error(yoke::Code::unsupported, "no card to time kernels on");
    }
    const Report report(copy_gigabytes_per_second());
    for (const NormShape& shape : std::vector<NormShape>{{64, 112, true, false},
                                                         {64, 56, true, false},
                                                         {256, 56, true, true},
                                                         {256, 56, false, false},
                                                         {128, 56, true, false},
                                                         {128, 28, true, false},
                                                         {512, 28, true, true},
                                                         {256, 28, true, false},
                                                         {256, 14, true, false},
                                                         {1024, 14, true, true},
                                                         {512, 14, true, false},
                                                         {512, 7, true, false},
                                                         {2048, 7, true, true}}) {
      time_norm(report, batch, type, shape);
    }
    time_pool(report, batch, type);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "yoke-bench-kernels: %s\n", error.what());
    return 1;
  }
  return 0;
}
