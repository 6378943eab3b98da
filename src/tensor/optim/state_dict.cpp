// The optimizer's state as a plain struct, and back. Loading reads and checks everything first and
// changes the optimizer afterwards, so that a refusal leaves it as it was.
#include "yoke/optim/state_dict.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/optim/optimizer.hpp"

namespace yoke::optim {
namespace {

using Options = std::vector<std::pair<std::string, OptionValue>>;
using Names = std::set<std::string>;

constexpr std::string_view kStep = "step";

[[noreturn]] void refuse(const std::string& why, const std::string& hint) {
  throw Error(Code::invalid_argument, "load optimizer state: " + why, hint);
}

std::string listed(const Names& names) {
  return "{" + core::joined({names.begin(), names.end()}) + "}";
}

Names difference(const Names& a, const Names& b) {
  Names left;
  std::ranges::set_difference(a, b, std::inserter(left, left.end()));
  return left;
}

Names names_of(const GroupState& group) {
  return {group.param_names.begin(), group.param_names.end()};
}

bool all_named(const OptimizerState& saved) {
  return std::ranges::all_of(saved.param_groups, [](const GroupState& group) {
    return group.param_names.size() == group.params.size();
  });
}

const OptionValue* find(const Options& options, std::string_view name) {
  const auto found = std::ranges::find(options, name, &Options::value_type::first);
  return found == options.end() ? nullptr : &found->second;
}

// The saved value as the type that `ours` has: Python writes momentum=0 as an integer.
OptionValue converted(const std::string& name, const OptionValue& saved, const OptionValue& ours) {
  if (saved.index() == ours.index() || std::holds_alternative<std::monostate>(ours)) return saved;
  const auto* whole = std::get_if<std::int64_t>(&saved);
  if (whole != nullptr && std::holds_alternative<double>(ours)) return static_cast<double>(*whole);
  refuse("the saved setting \"" + name + "\" has another type than here",
         "load the state of an optimizer of the same kind");
}

}  // namespace

bool Optimizer::named() const {
  return std::ranges::all_of(groups_, [](const Group& group) {
    return std::ranges::none_of(group.parameters,
                                [](const Parameter& p) { return p.name.empty(); });
  });
}

OptimizerState Optimizer::state_dict() const {
  OptimizerState saved;
  std::int64_t index = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    GroupState& out = saved.param_groups.emplace_back();
    out.options = options(g);
    out.options.insert(out.options.begin(), {"lr", groups_[g].lr});
    out.options.emplace_back("initial_lr", groups_[g].initial_lr);
    for (const Parameter& parameter : groups_[g].parameters) {
      ParameterState state;
      for (std::size_t i = 0; i < parameter.slots.size(); ++i) {
        const at::Tensor& slot = parameter.slots[i];
        const std::string name(slot_names()[i]);
        if (slot.defined()) state.emplace_back(name, name == kStep ? slot.cpu().clone() : slot);
      }
      if (!state.empty()) saved.state.emplace(index, std::move(state));
      if (named()) out.param_names.push_back(parameter.name);
      out.params.push_back(index++);
    }
  }
  return saved;
}

std::vector<Optimizer::Source> Optimizer::sources(const OptimizerState& saved) const {
  if (groups_.size() != saved.param_groups.size()) {
    refuse(
        core::text(groups_.size(), " parameter groups here, ", saved.param_groups.size(), " saved"),
        "make the same groups as the run that saved");
  }
  const bool by_name = named() && all_named(saved);
  std::vector<Source> sources;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const auto& parameters = groups_[g].parameters;
    const GroupState* there = &saved.param_groups[g];
    if (by_name) {
      Names names;
      for (const Parameter& parameter : parameters) names.insert(parameter.name);
      const auto found = std::ranges::find(saved.param_groups, names, names_of);
      if (found == saved.param_groups.end()) {
        refuse(core::text("group ", g, " differs: only here ",
                          listed(difference(names, names_of(*there))), ", only saved ",
                          listed(difference(names_of(*there), names))),
               "make the optimizer of the same parameters and groups as the run that saved");
      }
      there = &*found;
    }
    if (there->params.size() != parameters.size()) {
      refuse(core::text("group ", g, " has ", parameters.size(), " parameters here, ",
                        there->params.size(), " saved"),
             "make the optimizer of the same parameters as the run that saved");
    }
    Source& source = sources.emplace_back(Source{there, {}});
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      auto place = static_cast<std::ptrdiff_t>(i);
      if (by_name) {
        place =
            std::ranges::find(there->param_names, parameters[i].name) - there->param_names.begin();
      }
      const auto state = saved.state.find(there->params[static_cast<std::size_t>(place)]);
      source.states.push_back(state == saved.state.end() ? nullptr : &state->second);
    }
  }
  return sources;
}

std::vector<at::Tensor> Optimizer::slots_from(const ParameterState& saved,
                                              const Parameter& parameter,
                                              const std::string& called) const {
  std::vector<at::Tensor> slots(slot_names().size());
  for (const auto& [name, tensor] : saved) {
    if (!tensor.defined()) continue;  // None, as SGD without momentum writes
    const auto slot = std::ranges::find(slot_names(), name);
    if (slot == slot_names().end()) {
      refuse("the saved state of " + called + " holds \"" + name +
                 "\", which this optimizer does not have",
             "load the state of an optimizer of the same kind");
    }
    if (!parameter.value.requires_grad()) {
      refuse(called + " has saved state and is frozen here",
             "freeze what the run that saved froze");
    }
    at::Tensor& target = slots[static_cast<std::size_t>(slot - slot_names().begin())];
    if (name == kStep) {
      target =
          tensor.to(parameter.value.device(), at::kFloat, /*non_blocking=*/false, /*copy=*/true)
              .reshape({});
      continue;
    }
    if (tensor.sizes() != parameter.value.sizes()) {
      refuse(core::text("\"", name, "\" of ", called, " has the shape ", tensor.sizes(),
                        ", the parameter here ", parameter.value.sizes()),
             "load the state of the same model");
    }
    target = at::empty_like(parameter.value).copy_(tensor);
  }
  return slots;
}

void Optimizer::load_state_dict(const OptimizerState& saved) {
  const torch::NoGradGuard no_grad;
  const std::vector<Source> from = sources(saved);
  std::vector<Group> loaded = groups_;
  std::vector<Options> settings(groups_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    Options known = options(g);
    known.emplace_back("lr", groups_[g].lr);
    known.emplace_back("initial_lr", groups_[g].initial_lr);
    for (const auto& [name, value] : from[g].group->options) {
      const OptionValue* ours = find(known, name);
      if (ours != nullptr) settings[g].emplace_back(name, converted(name, value, *ours));
    }
    const OptionValue* lr = find(settings[g], "lr");
    const OptionValue* initial_lr = find(settings[g], "initial_lr");
    if (lr != nullptr) loaded[g].lr = std::get<double>(*lr);
    loaded[g].initial_lr = initial_lr != nullptr ? std::get<double>(*initial_lr) : loaded[g].lr;
    for (std::size_t i = 0; i < loaded[g].parameters.size(); ++i) {
      Parameter& parameter = loaded[g].parameters[i];
      const std::string called = parameter.name.empty()
                                     ? core::text("parameter ", i, " of group ", g)
                                     : "\"" + parameter.name + "\"";
      const ParameterState* state = from[g].states[i];
      parameter.slots = slots_from(state != nullptr ? *state : ParameterState{}, parameter, called);
    }
  }
  groups_ = std::move(loaded);
  for (Group& group : groups_) {
    if (group.device_lr.defined()) group.device_lr.fill_(group.lr);
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) set_options(g, settings[g]);
}

}  // namespace yoke::optim
