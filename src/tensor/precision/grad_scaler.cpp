#include "yoke/precision/grad_scaler.hpp"

#include <algorithm>
#include <vector>

#include <ATen/Functions.h>

#include "yoke/comm/group.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/optim/optimizer.hpp"

namespace yoke::precision {
namespace {

using core::text;

void require_sane(const GradScalerOptions& o) {
  const bool sane = o.growth_factor > 1 && o.backoff_factor > 0 && o.backoff_factor < 1 &&
                    o.growth_interval > 0 && o.min_scale > 0 && o.max_scale >= o.min_scale &&
                    o.init_scale >= o.min_scale && o.init_scale <= o.max_scale;
  if (sane) return;
  throw Error(Code::invalid_argument,
              text("make a GradScaler: init_scale ", o.init_scale, " in [", o.min_scale, ", ",
                   o.max_scale, "], growth_factor ", o.growth_factor, ", backoff_factor ",
                   o.backoff_factor, ", growth_interval ", o.growth_interval),
              "give factors above and below 1, and an initial scale within the limits");
}

/// Gradients of one device and dtype, as the list operations want them.
std::vector<std::vector<at::Tensor>> gradient_lists(const optim::Optimizer& optimizer) {
  std::vector<std::vector<at::Tensor>> lists;
  for (const at::Tensor& parameter : optimizer.parameters()) {
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    auto list = std::ranges::find_if(lists, [&](const auto& one) {
      return one[0].device() == gradient.device() && one[0].scalar_type() == gradient.scalar_type();
    });
    if (list == lists.end()) {
      lists.emplace_back();
      list = std::prev(lists.end());
    }
    list->push_back(gradient);
  }
  return lists;
}

}  // namespace

GradScaler::GradScaler(at::Device device, const GradScalerOptions& options) : options_(options) {
  require_sane(options);
  const auto on = at::TensorOptions().device(device);
  scale_ = at::full({1}, options.init_scale, on.dtype(at::kFloat));
  growth_ = at::zeros({1}, on.dtype(at::kInt));
  found_inf_ = at::zeros({1}, on.dtype(at::kFloat));
  counts_ = at::zeros({2}, on.dtype(at::kLong));
}

at::Tensor GradScaler::scale(const at::Tensor& loss) const {
  // Not view({}): that is view(ScalarType), the bytes.
  return loss * scale_.to(loss.scalar_type()).squeeze();
}

void GradScaler::unscale(optim::Optimizer& optimizer) {
  if (stage_ != Stage::scaled) {
    throw Error(Code::invalid_argument,
                text("unscale gradients: ", stage_ == Stage::unscaled ? "unscale()" : "step()",
                     " was called before in this step"),
                "call unscale() once, before clipping, and update() at the end of each step");
  }
  const at::NoGradGuard no_grad;
  const at::Tensor inverse = scale_.reciprocal();
  for (const auto& list : gradient_lists(optimizer)) {
    at::_amp_foreach_non_finite_check_and_unscale_(list, found_inf_, inverse);
  }
  if (options_.group != nullptr) options_.group->all_reduce(found_inf_, comm::ReduceOp::maximum);
  stage_ = Stage::unscaled;
}

void GradScaler::step(optim::Optimizer& optimizer) {
  if (stage_ == Stage::stepped) {
    throw Error(Code::invalid_argument, "step with a GradScaler: step() was called before",
                "call update() at the end of each step");
  }
  if (stage_ == Stage::scaled) unscale(optimizer);
  const at::NoGradGuard no_grad;
  optimizer.step(found_inf_.squeeze());
  // taken += 1 - found; skips = (skips + 1) * found
  const at::Tensor found = found_inf_.to(at::kLong);
  counts_.narrow(0, 0, 1).add_(1 - found);
  counts_.narrow(0, 1, 1).add_(1).mul_(found);
  stage_ = Stage::stepped;
}

void GradScaler::update() {
  const at::NoGradGuard no_grad;
  if (stage_ == Stage::stepped) {
    at::_amp_update_scale_(scale_, growth_, found_inf_, options_.growth_factor,
                           options_.backoff_factor, options_.growth_interval);
    scale_.clamp_(options_.min_scale, options_.max_scale);
  }
  found_inf_.zero_();
  stage_ = Stage::scaled;
}

std::int64_t GradScaler::steps_taken() const { return counts_[0].item<std::int64_t>(); }

void GradScaler::check(const optim::Optimizer& optimizer) const {
  const auto skips = counts_[1].item<std::int64_t>();
  if (skips < options_.max_skips) return;
  std::string where = "all are finite now";
  const std::vector<at::Tensor> parameters = optimizer.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& gradient = parameters[i].grad();
    if (!gradient.defined() || at::isfinite(gradient).all().item<bool>()) continue;
    where = text("the first that is not finite is of parameter ", i, " of ", parameters.size(),
                 ", ", gradient.sizes());
    break;
  }
  throw Error(Code::corrupt_data,
              text("train in fp16: ", skips, " steps in a row were skipped after ",
                   counts_[0].item<std::int64_t>(), " good ones, at scale ", scale_.item<float>(),
                   ": gradients are not finite; ", where),
              "lower the learning rate, clip the gradients, or use bf16");
}

GradScalerState GradScaler::state() const {
  const at::Tensor counts = counts_.to(at::kCPU);
  return {.scale = scale_.item<float>(),
          .growth_factor = options_.growth_factor,
          .backoff_factor = options_.backoff_factor,
          .growth_interval = options_.growth_interval,
          .growth_tracker = growth_.item<int>(),
          .steps_taken = counts[0].item<std::int64_t>(),
          .skips_in_a_row = counts[1].item<std::int64_t>()};
}

void GradScaler::load(const GradScalerState& state) {
  GradScalerOptions loaded = options_;
  loaded.init_scale = state.scale;
  loaded.growth_factor = state.growth_factor;
  loaded.backoff_factor = state.backoff_factor;
  loaded.growth_interval = state.growth_interval;
  require_sane(loaded);
  loaded.init_scale = options_.init_scale;
  options_ = loaded;
  const at::NoGradGuard no_grad;
  scale_.fill_(state.scale);
  growth_.fill_(state.growth_tracker);
  counts_.copy_(at::tensor({state.steps_taken, state.skips_in_a_row}, at::kLong));
  found_inf_.zero_();
  stage_ = Stage::scaled;
}

}  // namespace yoke::precision
