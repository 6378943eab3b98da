#include "yoke/optim/exponential_moving_average.hpp"

#include <algorithm>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::optim {
namespace {

const at::Tensor* find(const ExponentialMovingAverage::Named& saved, const std::string& name) {
  const auto found = std::ranges::find(saved, name, &std::pair<std::string, at::Tensor>::first);
  return found == saved.end() ? nullptr : &found->second;
}

}  // namespace

ExponentialMovingAverage::ExponentialMovingAverage(const torch::nn::Module& module,
                                                   const EmaOptions& options)
    : options_(options) {
  if (!(options.decay >= 0 && options.decay <= 1)) {
    throw Error(Code::invalid_argument, core::text("average weights with decay ", options.decay),
                "give a number from 0 to 1");
  }
  for (const auto& item : module.named_parameters()) {
    const at::Tensor& value = item.value();
    entries_.push_back({item.key(), value, value.detach().clone(), value.is_floating_point()});
  }
  for (const auto& item : module.named_buffers()) {
    entries_.push_back({item.key(), item.value(), item.value().detach().clone(), false});
  }
}

void ExponentialMovingAverage::update() {
  const torch::NoGradGuard no_grad;
  std::vector<at::Tensor> averages;
  std::vector<at::Tensor> values;
  for (Entry& entry : entries_) {
    if (entry.averaged) {
      averages.push_back(entry.average);
      values.push_back(entry.value);
    } else {
      entry.average.copy_(entry.value);
    }
  }
  if (!averages.empty()) at::_foreach_lerp_(averages, values, 1 - options_.decay);
}

void ExponentialMovingAverage::swap() {
  const torch::NoGradGuard no_grad;
  // By values, not by tensors: optimizer, gradient engine and captured graphs hold the module's
  // tensors.
  for (Entry& entry : entries_) {
    const at::Tensor before = entry.value.detach().clone();
    entry.value.copy_(entry.average);
    entry.average.copy_(before);
  }
}

ExponentialMovingAverage::Named ExponentialMovingAverage::state_dict() const {
  Named state;
  for (const Entry& entry : entries_) state.emplace_back(entry.name, entry.average);
  return state;
}

void ExponentialMovingAverage::load_state_dict(const Named& saved) {
  const torch::NoGradGuard no_grad;
  std::vector<std::string> wrong;
  for (const Entry& entry : entries_) {
    const at::Tensor* there = find(saved, entry.name);
    if (there == nullptr || there->sizes() != entry.value.sizes()) wrong.push_back(entry.name);
  }
  if (!wrong.empty() || saved.size() != entries_.size()) {
    throw Error(
        Code::invalid_argument,
        core::text("load averaged weights: ", saved.size(), " tensors saved, ", entries_.size(),
                   " here; missing or of another shape: {", core::joined(wrong), "}"),
        "load the average of the same model");
  }
  for (Entry& entry : entries_) entry.average.copy_(*find(saved, entry.name));
}

}  // namespace yoke::optim
