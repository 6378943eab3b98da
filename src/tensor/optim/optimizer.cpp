#include "yoke/optim/optimizer.hpp"

#include <algorithm>
#include <set>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::optim {
namespace {

bool lie_alike(const at::Tensor& a, const at::Tensor& b) {
  for (std::int64_t d = 0; d < a.dim(); ++d) {
    if (a.size(d) != 1 && a.stride(d) != b.stride(d)) return false;
  }
  return true;
}

// `tensor`, or a copy that lies in memory as `like` does: the fused kernels walk both by one index.
at::Tensor laid_out_like(const at::Tensor& tensor, const at::Tensor& like) {
  return lie_alike(tensor, like) ? tensor : at::empty_like(like).copy_(tensor);
}

bool has_fused_kernel(const at::Tensor& value) {
  const auto dtype = value.scalar_type();
  return (value.is_cpu() || value.is_cuda()) && value.is_non_overlapping_and_dense() &&
         (dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf ||
          dtype == at::kBFloat16);
}

}  // namespace

std::vector<at::Tensor> Optimizer::List::slots(std::size_t index) const {
  std::vector<at::Tensor> tensors;
  tensors.reserve(parameters.size());
  for (const Parameter* parameter : parameters) tensors.push_back(parameter->slots[index]);
  return tensors;
}

void Optimizer::add_group(const NamedParameters& parameters, double lr) {
  if (!(lr >= 0)) {
    throw Error(Code::invalid_argument, core::text("make an optimizer: lr is ", lr),
                "give 0 or more");
  }
  std::set<const void*> known;
  std::set<std::string> names;
  for (const Group& group : groups_) {
    for (const Parameter& parameter : group.parameters) {
      known.insert(parameter.value.unsafeGetTensorImpl());
      names.insert(parameter.name);
    }
  }
  Group group{.parameters = {}, .lr = lr, .initial_lr = lr, .device_lr = {}};
  for (const auto& [name, value] : parameters.list()) {
    const bool new_name = name.empty() || names.insert(name).second;
    if (!known.insert(value.unsafeGetTensorImpl()).second || !new_name) {
      throw Error(Code::invalid_argument,
                  core::text("make an optimizer: parameter \"", name, "\" appears twice"),
                  "pass each parameter once, in one group");
    }
    group.parameters.push_back({name, value, std::vector<at::Tensor>(slot_names().size())});
  }
  groups_.push_back(std::move(group));
}

void Optimizer::step(const at::Tensor& found_inf) {
  const torch::NoGradGuard no_grad;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (List& list : lists(groups_[g])) {
      if (found_inf.defined()) list.found_inf = found_inf;
      if (!list.fused && found_inf.defined() && found_inf.item<float>() != 0.0F) continue;
      step_list(g, list);
    }
  }
}

std::vector<Optimizer::List> Optimizer::lists(Group& group) const {
  std::vector<List> lists;
  for (Parameter& parameter : group.parameters) {
    const at::Tensor& value = parameter.value;
    const at::Tensor& gradient = value.grad();
    if (!gradient.defined()) continue;
    if (gradient.layout() != at::kStrided) {
      throw Error(Code::unsupported,
                  core::text("optimizer step: the gradient of \"", parameter.name, "\" is sparse"),
                  "build the layer without sparse gradients");
    }
    if (gradient.sizes() != value.sizes()) {
      throw Error(
          Code::invalid_argument,
          core::text("optimizer step: the gradient of \"", parameter.name, "\" has the shape ",
                     gradient.sizes(), ", the parameter ", value.sizes()));
    }
    const bool fused = has_fused_kernel(value);
    auto list = std::ranges::find_if(lists, [&](const List& one) {
      return one.fused == fused && one.values[0].device() == value.device() &&
             one.values[0].scalar_type() == value.scalar_type();
    });
    if (list == lists.end()) {
      lists.emplace_back();
      list = std::prev(lists.end());
      list->fused = fused;
    }
    for (at::Tensor& slot : parameter.slots) {
      if (slot.defined() && slot.sizes() == value.sizes()) slot = laid_out_like(slot, value);
    }
    list->values.push_back(value);
    list->gradients.push_back(laid_out_like(gradient, value));
    list->parameters.push_back(&parameter);
  }
  return lists;
}

void Optimizer::zero_grad(bool set_to_none) {
  const torch::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (Group& group : groups_) {
    for (Parameter& parameter : group.parameters) {
      at::Tensor& gradient = parameter.value.mutable_grad();
      if (!gradient.defined()) continue;
      if (set_to_none) {
        gradient.reset();
        continue;
      }
      // Not detach_(), which throws on a view; detach() shares the memory and leaves the graph
      // behind.
      if (gradient.grad_fn()) gradient = gradient.detach();
      gradients.push_back(gradient);
    }
  }
  if (!gradients.empty()) at::_foreach_zero_(gradients);
}

std::vector<at::Tensor> Optimizer::parameters() const {
  std::vector<at::Tensor> values;
  for (const Group& group : groups_) {
    for (const Parameter& parameter : group.parameters) values.push_back(parameter.value);
  }
  return values;
}

void Optimizer::keep_lr_on_device() {
  const torch::NoGradGuard no_grad;
  for (Group& group : groups_) {
    if (group.device_lr.defined() || group.parameters.empty()) continue;
    const at::Tensor& value = group.parameters[0].value;
    if (!value.is_cuda()) continue;
    group.device_lr = at::full({}, group.lr, value.options().dtype(at::kFloat));
  }
}

void Optimizer::Group::set_lr(double to) {
  if (to == lr) return;
  lr = to;
  const torch::NoGradGuard no_grad;
  if (device_lr.defined()) device_lr.fill_(lr);
}

void Optimizer::set_lr(double lr) {
  for (Group& group : groups_) group.set_lr(lr);
}

void Optimizer::set_lr_factor(double factor) {
  for (Group& group : groups_) group.set_lr(group.initial_lr * factor);
}

}  // namespace yoke::optim
