#include "yoke/bench/step_report.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include <ATen/Functions.h>

#include "contender.hpp"
#include "yoke/comm/device.hpp"
#include "yoke/comm/world.hpp"
#include "yoke/kernels/kernels.hpp"
#include "yoke/profile/recorder.hpp"

namespace yoke::bench {
namespace {

using core::Json;

constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;

// Median seconds of a call, the device idle after each.
double seconds_of(at::Device device, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  constexpr int kCalls = 9;
  std::vector<double> times;
  for (int i = -2; i < kCalls; ++i) {
    comm::synchronize(device);
    const auto begin = Clock::now();
    call();
    comm::synchronize(device);
    if (i >= 0) times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + kCalls / 2, times.end());
  return times[kCalls / 2];
}

double copied_bytes_per_second(at::Device device) {
  const std::int64_t count = device.is_cuda() ? 1 << 28 : 1 << 25;
  const at::Tensor from = at::ones({count}, at::TensorOptions(device).dtype(at::kFloat));
  at::Tensor to = at::empty_like(from);
  return 2.0 * static_cast<double>(from.nbytes()) / seconds_of(device, [&] { to.copy_(from); });
}

at::ScalarType format_of(const std::string& precision) {
  return precision == "bf16" ? at::kBFloat16 : precision == "fp16" ? at::kHalf : at::kFloat;
}

double product_flops_per_second(at::Device device, const std::string& precision) {
  const std::int64_t side = device.is_cuda() ? 8192 : 1024;
  const at::Tensor a = at::randn({side, side}, at::TensorOptions(device)).to(format_of(precision));
  const auto n = static_cast<double>(side);
  return 2 * n * n * n / seconds_of(device, [&] { (void)at::mm(a, a); });
}

struct Work {
  double flops = 0;
  double norm_bytes = 0;
  double pooling_bytes = 0;
  double optimizer_bytes = 0;
};

// What one step has to do, from an eager one that is watched: each convolution costs its forward
// twice again in backward.
Work work_of_step(const StepBenchOptions& options, comm::World& world) {
  const Inputs inputs = make_inputs(options, world);
  Contender eager("none", options, world, inputs);
  eager.time(2);
  const kernels::Traffic before = kernels::traffic();
  profile::Recorder recorder({.host = true, .device = false, .flops = true});
  eager.time(1);
  recorder.stop();
  const kernels::Traffic after = kernels::traffic();
  static const std::set<std::string> products{"aten::mm", "aten::addmm", "aten::bmm"};
  Work work;
  std::map<std::uint64_t, std::uint64_t> counted_until;  // by thread: autocast calls them twice
  for (const profile::Event& event : recorder.events()) {
    const bool convolution = event.name == "aten::conv2d";
    if (!convolution && !products.contains(event.name)) continue;
    std::uint64_t& until = counted_until[event.stream];
    if (event.flops == 0 || event.start_ns < until) continue;
    until = event.end_ns;
    work.flops += (convolution ? 3.0 : 1.0) * static_cast<double>(event.flops);
  }
  work.norm_bytes = static_cast<double>(after.norm - before.norm);
  work.pooling_bytes = static_cast<double>(after.pooling - before.pooling);
  // SGD with momentum reads weight, gradient and momentum, and writes weight and momentum.
  work.optimizer_bytes = 5.0 * static_cast<double>(eager.parameter_bytes());
  return work;
}

double bytes_of(const std::string& group, const Work& work) {
  if (group == "norm") return work.norm_bytes;
  if (group == "pooling") return work.pooling_bytes;
  return group == "optimizer, gradient lists" ? work.optimizer_bytes : 0;
}

template <class... Values>
std::string line(const char* format, Values... values) {
  std::array<char, 200> out{};
  std::snprintf(out.data(), out.size(), format, values...);
  return out.data();
}

std::string group_line(const Json& group, double step_ms) {
  const double ms = group["ms"];
  std::string out =
      line("  %-28s %8.3f ms %5.1f %% %6.0f x", group["name"].get<std::string>().c_str(), ms,
           100 * ms / step_ms, group["launches"].get<double>());
  if (group.contains("gigabytes")) {
    out += line("  %7.2f GB  %3.0f %% of copy", group["gigabytes"].get<double>(),
                100 * group["of_copy"].get<double>());
  }
  if (group.contains("teraflops")) {
    out += line("  %7.1f TFLOP/s  %3.0f %% of product", group["teraflops"].get<double>(),
                100 * group["of_matrix"].get<double>());
  }
  return out + "\n";
}

}  // namespace

Json step_report(const StepBenchOptions& options, comm::World& world) {
  StepBenchOptions profiled = options;
  profiled.profile = true;
  const at::Device device = world.device();
  const Work work = work_of_step(options, world);
  comm::reset_peak_memory(device);
  const Json bench = run_step_bench(profiled, world);
  const double copy = copied_bytes_per_second(device);
  const double product = product_flops_per_second(device, options.precision);
  Json groups = bench["profile"]["groups"];
  for (Json& group : groups) {
    const std::string name = group["name"];
    const double seconds = group["ms"].get<double>() / 1000;
    if (const double bytes = bytes_of(name, work); bytes > 0) {
      group["gigabytes"] = bytes / kGiga;
      group["of_copy"] = bytes / seconds / copy;
    }
    if (name == "convolution, products" && work.flops > 0) {
      group["teraflops"] = work.flops / seconds / kTera;
      group["of_matrix"] = work.flops / seconds / product;
    }
  }
  return {{"bench", bench},
          {"copy_gigabytes_per_second", copy / kGiga},
          {"matrix_teraflops", product / kTera},
          {"flops", work.flops},
          {"groups", groups}};
}

std::string step_report_text(const Json& report) {
  const Json& bench = report["bench"];
  const Json& profile = bench["profile"];
  const double step_ms = bench["step_ms"];
  const bool on_device = profile["on_device"];
  std::string out = line("%.3f ms a step, %.0f images/s, batch %lld, %s\n", step_ms,
                         bench["images_per_second"].get<double>(), bench["batch"].get<long long>(),
                         bench["in_turn_ms"].items().begin().key().c_str());
  out +=
      line("copy %.0f GB/s, product %.1f TFLOP/s; peak memory %.2f GiB\n",
           report["copy_gigabytes_per_second"].get<double>(),
           report["matrix_teraflops"].get<double>(), bench["peak_bytes"].get<double>() / (1 << 30));
  out += line("%s busy %.1f %%; %.0f %s a step\n", on_device ? "card" : "CPU's operators",
              100 * profile["utilisation"].get<double>(), profile["launches"].get<double>(),
              on_device ? "launches" : "operators");
  for (const Json& group : report["groups"]) out += group_line(group, step_ms);
  if (on_device) {
    out += line("  %-28s %8.3f ms %5.1f %%\n", "gaps: the card waits",
                std::max(0.0, step_ms - profile["busy_ms"].get<double>()),
                100 * std::max(0.0, 1 - profile["utilisation"].get<double>()));
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(5, profile["kernels"].size()); ++i) {
    const Json& kernel = profile["kernels"][i];
    out += line("    %8.3f ms %5.0f x  %.100s\n", kernel["ms"].get<double>(),
                kernel["launches"].get<double>(), kernel["name"].get<std::string>().c_str());
  }
  return out;
}

}  // namespace yoke::bench
