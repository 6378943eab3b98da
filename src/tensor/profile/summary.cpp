#include "yoke/profile/summary.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <utility>

namespace yoke::profile {
namespace {

struct GroupWords {
  std::string_view group;
  std::vector<std::string_view> words;
};

// The first word that is part of a kernel's name gives its group.
const std::vector<GroupWords>& group_words() {
  static const auto* words = new std::vector<GroupWords>{
      {"communication", {"nccl", "c10d::", "gloo:"}},
      {"pooling", {"max_pool", "avg_pool", "adaptive", "MaxPool", "AvgPool"}},
      {"norm",
       {"statistics", "forward_plain", "forward_relu", "forward_add", "sums_plain", "sums_relu",
        "sums_add_relu", "backward_plain", "backward_relu", "batch_norm", "bn_fw", "bn_bw",
        "batchnorm", "BatchNorm", "norm_"}},
      {"optimizer, gradient lists",
       {"multi_tensor", "FusedSgd", "fused_sgd", "FusedAdam", "fused_adam", "foreach"}},
      {"convolution, products",
       {"gemm", "conv", "cutlass", "xmma", "wgrad", "dgrad", "fprop", "implicit", "cudnn", "splitK",
        "nvjet", "nchw", "nhwc", "addmm", "::mm", "matmul", "bmm", "linear"}},
      {"copies, casts", {"copy", "Memcpy", "Memset", "CatArray", "cat_", "stem_fold"}},
      {"pointwise, sums",
       {"elementwise", "reduce", "softmax", "nll", "fill", "Reduce", "relu", "::add", "::mul",
        "::sum", "threshold"}}};
  return *words;
}

constexpr double kNsPerMs = 1e6;

using Intervals = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

// Sorted, and those that overlap joined.
Intervals joined(Intervals intervals) {
  std::ranges::sort(intervals);
  Intervals out;
  for (const auto& [begin, end] : intervals) {
    if (!out.empty() && begin <= out.back().second) {
      out.back().second = std::max(out.back().second, end);
    } else {
      out.emplace_back(begin, end);
    }
  }
  return out;
}

double length(const Intervals& intervals) {
  double sum = 0;
  for (const auto& [begin, end] : intervals) sum += static_cast<double>(end - begin);
  return sum;
}

// Nanoseconds of `a` that `b` does not cover; both joined.
double uncovered(const Intervals& a, const Intervals& b) {
  Intervals both = a;
  both.insert(both.end(), b.begin(), b.end());
  return length(joined(std::move(both))) - length(b);
}

class Shares {
 public:
  void add(std::string_view name, double ns) {
    Share& share = shares_[std::string(name)];
    share.ms += ns / kNsPerMs;
    share.launches += 1;
  }

  [[nodiscard]] std::vector<Share> per_step(int steps) const {
    std::vector<Share> out;
    for (const auto& [name, share] : shares_)
      out.push_back({name, share.ms / steps, share.launches / steps});
    std::ranges::sort(out, [](const Share& a, const Share& b) { return a.ms > b.ms; });
    return out;
  }

 private:
  std::map<std::string, Share> shares_;
};

std::vector<const Event*> of_busiest_device(const std::vector<Event>& events) {
  std::map<int, std::vector<const Event*>> by_device;
  for (const Event& event : events) {
    if (event.on_device) by_device[event.device].push_back(&event);
  }
  if (by_device.empty()) return {};
  return std::ranges::max_element(by_device, {}, [](const auto& one) { return one.second.size(); })
      ->second;
}

// Each operator's time without its callees', by start.
std::vector<std::pair<const Event*, double>> own_times(const std::vector<Event>& events) {
  std::map<std::uint64_t, std::vector<const Event*>> by_thread;
  for (const Event& event : events) {
    if (!event.on_device) by_thread[event.stream].push_back(&event);
  }
  std::vector<std::pair<const Event*, double>> out;
  for (auto& [thread, list] : by_thread) {
    std::ranges::stable_sort(list, [](const Event* a, const Event* b) {
      return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->end_ns > b->end_ns;
    });
    std::vector<std::size_t> open;  // places in `out` of the operators that are running
    for (const Event* event : list) {
      while (!open.empty() && out[open.back()].first->end_ns <= event->start_ns) open.pop_back();
      const auto duration = static_cast<double>(event->end_ns - event->start_ns);
      if (!open.empty()) out[open.back()].second -= duration;
      open.push_back(out.size());
      out.emplace_back(event, duration);
    }
  }
  return out;
}

std::string formatted(const char* format, double a, double b, double c) {
  std::array<char, 160> out{};
  std::snprintf(out.data(), out.size(), format, a, b, c);
  return out.data();
}

std::string row(const Share& share, double step_ms) {
  const double percent = step_ms > 0 ? 100 * share.ms / step_ms : 0;
  return formatted("%9.3f ms %5.1f %% %6.0f x  ", share.ms, percent, share.launches) +
         share.name.substr(0, 100);
}

core::Json to_json(const std::vector<Share>& shares, std::size_t limit) {
  core::Json out = core::Json::array();
  for (std::size_t i = 0; i < std::min(limit, shares.size()); ++i) {
    out.push_back(
        {{"name", shares[i].name}, {"ms", shares[i].ms}, {"launches", shares[i].launches}});
  }
  return out;
}

}  // namespace

std::string_view group_of(std::string_view kernel) {
  for (const auto& [group, words] : group_words()) {
    for (const std::string_view word : words) {
      if (kernel.find(word) != std::string_view::npos) return group;
    }
  }
  return "other";
}

Summary summarise(const std::vector<Event>& events, int steps) {
  Summary summary{.on_device = false, .steps = std::max(1, steps)};
  Intervals all;
  Intervals communication;
  Intervals rest;
  Shares groups;
  Shares kernels;
  const auto note = [&](const Event& event, double own_ns) {
    const std::string_view group = group_of(event.name);
    groups.add(group, own_ns);
    kernels.add(event.name, own_ns);
    all.emplace_back(event.start_ns, event.end_ns);
    (group == "communication" ? communication : rest).emplace_back(event.start_ns, event.end_ns);
  };
  const std::vector<const Event*> device = of_busiest_device(events);
  summary.on_device = !device.empty();
  for (const Event* event : device)
    note(*event, static_cast<double>(event->end_ns - event->start_ns));
  if (device.empty()) {
    for (const auto& [event, own_ns] : own_times(events)) note(*event, own_ns);
  }
  if (all.empty()) return summary;

  const double per_step = 1 / kNsPerMs / summary.steps;
  summary.launches = static_cast<double>(all.size()) / summary.steps;
  all = joined(std::move(all));
  communication = joined(std::move(communication));
  summary.step_ms = static_cast<double>(all.back().second - all.front().first) * per_step;
  summary.busy_ms = length(all) * per_step;
  summary.gaps_ms = summary.step_ms - summary.busy_ms;
  summary.communication_ms = length(communication) * per_step;
  summary.exposed_communication_ms = uncovered(communication, joined(std::move(rest))) * per_step;
  summary.groups = groups.per_step(summary.steps);
  summary.kernels = kernels.per_step(summary.steps);
  return summary;
}

std::vector<std::string> lines(const Summary& summary, std::size_t kernels) {
  if (summary.groups.empty()) return {"nothing was recorded"};
  std::vector<std::string> out;
  if (summary.on_device) {
    out.push_back(formatted("%.3f ms a step on the card: busy %.3f ms, gaps %.3f ms",
                            summary.step_ms, summary.busy_ms, summary.gaps_ms));
    if (summary.communication_ms > 0) {
      out.push_back(formatted("communication %.3f ms, of which nothing covers %.3f ms (%.1f %%)",
                              summary.communication_ms, summary.exposed_communication_ms,
                              100 * summary.exposed_communication_ms / summary.step_ms));
    }
  } else {
    out.push_back(
        formatted("%.3f ms a step on the CPU, operators run in %.3f ms of it (%.0f a step)",
                  summary.step_ms, summary.busy_ms, summary.launches));
  }
  for (const Share& group : summary.groups) out.push_back(row(group, summary.step_ms));
  for (std::size_t i = 0; i < std::min(kernels, summary.kernels.size()); ++i)
    out.push_back(row(summary.kernels[i], summary.step_ms));
  return out;
}

core::Json to_json(const Summary& summary, std::size_t kernels) {
  return {{"on_device", summary.on_device},
          {"steps", summary.steps},
          {"step_ms", summary.step_ms},
          {"busy_ms", summary.busy_ms},
          {"gaps_ms", summary.gaps_ms},
          {"communication_ms", summary.communication_ms},
          {"exposed_communication_ms", summary.exposed_communication_ms},
          {"launches", summary.launches},
          {"groups", to_json(summary.groups, summary.groups.size())},
          {"kernels", to_json(summary.kernels, kernels)}};
}

}  // namespace yoke::profile
