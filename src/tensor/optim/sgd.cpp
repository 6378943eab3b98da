#include "yoke/optim/sgd.hpp"

#include <array>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::optim {
namespace {

constexpr std::array<std::string_view, 1> kSlots{"momentum_buffer"};
constexpr std::size_t kMomentum = 0;

void check(const SGDOptions& options) {
  if (!(options.momentum >= 0) || !(options.weight_decay >= 0)) {
    throw Error(Code::invalid_argument,
                core::text("make SGD: momentum ", options.momentum, ", weight_decay ",
                           options.weight_decay),
                "give numbers of 0 or more");
  }
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0)) {
    throw Error(Code::invalid_argument,
                core::text("make SGD: Nesterov with momentum ", options.momentum, " and dampening ",
                           options.dampening),
                "Nesterov needs a momentum above 0 and no dampening");
  }
}

// What the fused kernels compute, for parameters that they do not take.
void step_one(const SGDOptions& options, double lr, const at::Tensor& value, at::Tensor gradient,
              at::Tensor& momentum) {
  if (options.maximize) gradient = gradient.neg();
  if (options.weight_decay != 0) gradient = gradient.add(value, options.weight_decay);
  if (options.momentum != 0) {
    if (momentum.defined()) {
      momentum.mul_(options.momentum).add_(gradient, 1 - options.dampening);
    } else {
      momentum = gradient.clone();
    }
    gradient = options.nesterov ? gradient.add(momentum, options.momentum) : momentum;
  }
  value.add_(gradient, -lr);
}

}  // namespace

SGD::SGD(const NamedParameters& parameters, const SGDOptions& options) {
  add_param_group(parameters, options);
}

void SGD::add_param_group(const NamedParameters& parameters, const SGDOptions& options) {
  check(options);
  add_group(parameters, options.lr);
  options_.push_back(options);
}

std::span<const std::string_view> SGD::slot_names() const { return kSlots; }

void SGD::step_list(std::size_t group, List& list) {
  const SGDOptions& options = options_[group];
  if (!list.fused) {
    for (std::size_t i = 0; i < list.values.size(); ++i) {
      step_one(options, lr(group), list.values[i], list.gradients[i],
               list.parameters[i]->slots[kMomentum]);
    }
    return;
  }
  const auto fused = [&](const List& part, const std::vector<at::Tensor>& momenta, bool first) {
    const auto step = [&](const auto& rate) {
      at::_fused_sgd_(part.values, part.gradients, momenta, options.weight_decay, options.momentum,
                      rate, options.dampening, options.nesterov, options.maximize, first,
                      /*grad_scale=*/std::nullopt, list.found_inf);
    };
    device_lr(group).defined() ? step(device_lr(group)) : step(lr(group));
  };
  if (options.momentum == 0) return fused(list, {}, false);
  // The kernel takes one answer to "is this the first step" for all, and a parameter may get its
  // first gradient late.
  List first;
  List later;
  // A first step that may be skipped must not leave a momentum behind that nothing was written to.
  // From zeros an ordinary step gives what the first gives, unless it is dampened: then the host
  // looks.
  const bool from_zeros = list.found_inf && options.dampening == 0;
  const auto skips_first = [&] {
    return list.found_inf && !from_zeros && list.found_inf->item<float>() != 0.0F;
  };
  for (std::size_t i = 0; i < list.values.size(); ++i) {
    at::Tensor& momentum = list.parameters[i]->slots[kMomentum];
    if (!momentum.defined() && skips_first()) continue;
    if (!momentum.defined() && from_zeros) momentum = at::zeros_like(list.values[i]);
    List& part = momentum.defined() ? later : first;
    if (!momentum.defined()) momentum = at::empty_like(list.values[i]);
    part.values.push_back(list.values[i]);
    part.gradients.push_back(list.gradients[i]);
    part.parameters.push_back(list.parameters[i]);
  }
  if (!first.values.empty()) fused(first, first.slots(kMomentum), true);
  if (!later.values.empty()) fused(later, later.slots(kMomentum), false);
}

Optimizer::Options SGD::options(std::size_t group) const {
  const SGDOptions& options = options_[group];
  return {{"momentum", options.momentum},
          {"dampening", options.dampening},
          {"weight_decay", options.weight_decay},
          {"nesterov", options.nesterov},
          {"maximize", options.maximize},
          {"foreach", std::monostate{}},
          {"differentiable", false},
          {"fused", std::monostate{}}};
}

void SGD::set_options(std::size_t group, const Options& options) {
  SGDOptions& target = options_[group];
  for (const auto& [name, value] : options) {
    if (name == "momentum") target.momentum = std::get<double>(value);
    if (name == "dampening") target.dampening = std::get<double>(value);
    if (name == "weight_decay") target.weight_decay = std::get<double>(value);
    if (name == "nesterov") target.nesterov = std::get<bool>(value);
    if (name == "maximize") target.maximize = std::get<bool>(value);
  }
}

}  // namespace yoke::optim
