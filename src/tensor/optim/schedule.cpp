#include "yoke/optim/schedule.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::optim {
namespace {

template <class Value, std::size_t kSize>
using Names = std::array<std::pair<std::string_view, Value>, kSize>;

constexpr Names<Shape, 4> kShapes{{{"constant", Shape::constant},
                                   {"linear", Shape::linear},
                                   {"cosine", Shape::cosine},
                                   {"step", Shape::step}}};
constexpr Names<LrScaling, 3> kScalings{
    {{"none", LrScaling::none}, {"linear", LrScaling::linear}, {"sqrt", LrScaling::square_root}}};

std::vector<std::string> listed(const auto& names) {
  std::vector<std::string> all;
  for (const auto& [name, value] : names) all.emplace_back(name);
  return all;
}

auto found(const auto& names, std::string_view name, std::string_view what) {
  for (const auto& [known, value] : names) {
    if (known == name) return value;
  }
  throw Error(Code::not_found, core::text("no ", what, " is named \"", name, '"'),
              core::unknown_name_hint(name, listed(names)));
}

[[noreturn]] void refuse(const std::string& why, const std::string& hint) {
  throw Error(Code::invalid_argument, "make a schedule: " + why, hint);
}

bool ends(Shape shape) { return shape == Shape::linear || shape == Shape::cosine; }

void check(const ScheduleOptions& o) {
  if (o.warmup_steps < 0 || o.total_steps < 0 || o.step_size < 0) {
    refuse(core::text("warmup_steps ", o.warmup_steps, ", total_steps ", o.total_steps,
                      ", step_size ", o.step_size),
           "give numbers of 0 or more");
  }
  if (!(o.end_factor >= 0) || !(o.warmup_factor >= 0) || !(o.gamma >= 0)) {
    refuse(core::text("end_factor ", o.end_factor, ", warmup_factor ", o.warmup_factor, ", gamma ",
                      o.gamma),
           "give numbers of 0 or more");
  }
  if (ends(o.shape) && o.total_steps <= o.warmup_steps) {
    refuse(core::text("total_steps ", o.total_steps, " with ", o.warmup_steps, " steps of warm-up"),
           "total_steps is the whole run and must be larger than its warm-up");
  }
  if (o.shape == Shape::step && o.step_size == 0) {
    refuse("shape step without step_size", "give the number of steps between two drops");
  }
}

}  // namespace

std::vector<std::string> shape_names() { return listed(kShapes); }
Shape shape_from_name(std::string_view name) { return found(kShapes, name, "schedule"); }
std::vector<std::string> lr_scaling_names() { return listed(kScalings); }
LrScaling lr_scaling_from_name(std::string_view name) {
  return found(kScalings, name, "rule for scaling the learning rate");
}

Schedule::Schedule(const ScheduleOptions& options) : options_(options) { check(options_); }

double Schedule::factor(std::int64_t step) const {
  const ScheduleOptions& o = options_;
  if (step < o.warmup_steps) {
    const double way = static_cast<double>(step) / static_cast<double>(o.warmup_steps);
    return o.warmup_factor + (1 - o.warmup_factor) * way;
  }
  if (o.shape == Shape::step) return std::pow(o.gamma, static_cast<double>(step / o.step_size));
  if (!ends(o.shape)) return 1;
  const auto length = static_cast<double>(o.total_steps - o.warmup_steps);
  const double way = std::min(1.0, static_cast<double>(step - o.warmup_steps) / length);
  const double left =
      o.shape == Shape::linear ? 1 - way : (1 + std::cos(std::numbers::pi * way)) / 2;
  return o.end_factor + (1 - o.end_factor) * left;
}

double scaled_lr(double lr, std::int64_t world_size, LrScaling rule) {
  if (world_size < 1) {
    throw Error(Code::invalid_argument,
                core::text("scale a learning rate to ", world_size, " ranks"),
                "give the number of ranks");
  }
  const auto ranks = static_cast<double>(world_size);
  switch (rule) {
    case LrScaling::none: break;
    case LrScaling::linear: return lr * ranks;
    case LrScaling::square_root: return lr * std::sqrt(ranks);
  }
  return lr;
}

}  // namespace yoke::optim
