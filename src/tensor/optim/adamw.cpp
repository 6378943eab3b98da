#include "yoke/optim/adamw.hpp"

#include <array>
#include <cmath>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::optim {
namespace {

constexpr std::array<std::string_view, 4> kSlots{"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
enum Slot : std::size_t { step_count, mean, square, max_square };

bool is_beta(double beta) { return beta >= 0 && beta < 1; }

void check(const AdamWOptions& options) {
  if (is_beta(options.betas.first) && is_beta(options.betas.second) && options.eps >= 0 &&
      options.weight_decay >= 0) {
    return;
  }
  throw Error(Code::invalid_argument,
              core::text("make AdamW: betas ", options.betas.first, " and ", options.betas.second,
                         ", eps ", options.eps, ", weight_decay ", options.weight_decay),
              "give betas from 0 to below 1, eps and weight_decay of 0 or more");
}

void make_missing(std::vector<at::Tensor>& slots, const at::Tensor& value, bool amsgrad) {
  if (!slots[step_count].defined()) {
    slots[step_count] = at::zeros({}, value.options().dtype(at::kFloat));
  }
  for (const Slot slot : {mean, square}) {
    if (!slots[slot].defined()) slots[slot] = at::zeros_like(value);
  }
  if (amsgrad && !slots[max_square].defined()) slots[max_square] = at::zeros_like(value);
}

// What the fused kernels compute, for parameters that they do not take; the step is counted
// already.
void step_one(const AdamWOptions& options, double lr, const at::Tensor& value, at::Tensor gradient,
              std::vector<at::Tensor>& slots) {
  const auto [beta1, beta2] = options.betas;
  const double step = slots[step_count].item<double>();
  if (options.maximize) gradient = gradient.neg();
  value.mul_(1 - lr * options.weight_decay);
  slots[mean].lerp_(gradient, 1 - beta1);
  slots[square].mul_(beta2).addcmul_(gradient, gradient.conj(), 1 - beta2);
  at::Tensor scale = slots[square];
  if (options.amsgrad) {
    at::maximum_out(slots[max_square], slots[max_square], slots[square]);
    scale = slots[max_square];
  }
  const double correction1 = 1 - std::pow(beta1, step);
  const double correction2 = 1 - std::pow(beta2, step);
  const at::Tensor divisor = scale.sqrt().div_(std::sqrt(correction2)).add_(options.eps);
  value.addcdiv_(slots[mean], divisor, -lr / correction1);
}

}  // namespace

AdamW::AdamW(const NamedParameters& parameters, const AdamWOptions& options) {
  add_param_group(parameters, options);
}

void AdamW::add_param_group(const NamedParameters& parameters, const AdamWOptions& options) {
  check(options);
  add_group(parameters, options.lr);
  options_.push_back(options);
}

std::span<const std::string_view> AdamW::slot_names() const { return kSlots; }

void AdamW::step_list(std::size_t group, List& list) {
  const AdamWOptions& options = options_[group];
  for (std::size_t i = 0; i < list.values.size(); ++i) {
    make_missing(list.parameters[i]->slots, list.values[i], options.amsgrad);
  }
  std::vector<at::Tensor> steps = list.slots(step_count);
  at::_foreach_add_(steps, 1);
  if (list.fused) {
    std::vector<at::Tensor> maxima;
    if (options.amsgrad) maxima = list.slots(max_square);
    const auto step = [&](const auto& rate) {
      at::_fused_adamw_(list.values, list.gradients, list.slots(mean), list.slots(square), maxima,
                        steps, rate, options.betas.first, options.betas.second,
                        options.weight_decay, options.eps, options.amsgrad, options.maximize,
                        /*grad_scale=*/std::nullopt, list.found_inf);
    };
    device_lr(group).defined() ? step(device_lr(group)) : step(lr(group));
    if (list.found_inf) {
      // A skipped step is not counted.
      at::_foreach_sub_(steps, std::vector<at::Tensor>(steps.size(), *list.found_inf));
    }
    return;
  }
  for (std::size_t i = 0; i < list.values.size(); ++i) {
    step_one(options, lr(group), list.values[i], list.gradients[i], list.parameters[i]->slots);
  }
}

Optimizer::Options AdamW::options(std::size_t group) const {
  const AdamWOptions& options = options_[group];
  return {{"betas", options.betas},
          {"eps", options.eps},
          {"weight_decay", options.weight_decay},
          {"amsgrad", options.amsgrad},
          {"foreach", std::monostate{}},
          {"maximize", options.maximize},
          {"capturable", false},
          {"differentiable", false},
          {"fused", std::monostate{}},
          {"decoupled_weight_decay", true}};
}

void AdamW::set_options(std::size_t group, const Options& options) {
  AdamWOptions& target = options_[group];
  for (const auto& [name, value] : options) {
    if (name == "betas") target.betas = std::get<std::pair<double, double>>(value);
    if (name == "eps") target.eps = std::get<double>(value);
    if (name == "weight_decay") target.weight_decay = std::get<double>(value);
    if (name == "amsgrad") target.amsgrad = std::get<bool>(value);
    if (name == "maximize") target.maximize = std::get<bool>(value);
  }
}

}  // namespace yoke::optim
