#include "yoke/checkpoint/state_dict.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>

#include <torch/nn/module.h>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::checkpoint {
namespace {

using core::text;

void collect(const torch::nn::Module& module, const std::string& prefix, StateDict& state) {
  for (const auto& item : module.named_parameters(/*recurse=*/false)) {
    state.emplace_back(prefix + item.key(), item.value().detach());
  }
  for (const auto& item : module.named_buffers(/*recurse=*/false)) {
    if (item.value().defined()) state.emplace_back(prefix + item.key(), item.value().detach());
  }
  for (const auto& item : module.named_children())
    collect(*item.value(), prefix + item.key() + ".", state);
}

bool all_start_with(const StateDict& state, std::string_view prefix) {
  return std::ranges::all_of(state,
                             [&](const auto& item) { return item.first.starts_with(prefix); });
}

/// How many letters to take off the names of `state`.
std::size_t prefix_to_strip(const StateDict& state, const StateDict& own,
                            const std::string& prefix) {
  const bool of_the_module =
      std::ranges::any_of(own, [&](const auto& item) { return item.first.starts_with(prefix); });
  return !state.empty() && !of_the_module && all_start_with(state, prefix) ? prefix.size() : 0;
}

std::string shape_text(const at::Tensor& tensor) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : tensor.sizes()) sizes.push_back(std::to_string(size));
  return "[" + core::joined(sizes) + "]";
}

/// "2 missing (a, b)"; nothing for an empty list.
void tell(std::vector<std::string>& parts, const std::vector<std::string>& names,
          std::string_view what) {
  constexpr std::ptrdiff_t kMost = 50;
  if (names.empty()) return;
  const auto shown = std::min<std::ptrdiff_t>(kMost, std::ssize(names));
  const std::vector<std::string> first(names.begin(), names.begin() + shown);
  parts.push_back(text(names.size(), " ", what, " (", core::joined(first),
                       std::ssize(names) > shown ? ", ...)" : ")"));
}

/// Pairs of the module's tensor and the one to copy into it, and what found no partner.
struct Match {
  std::vector<std::pair<at::Tensor, at::Tensor>> copies = {};
  std::vector<std::string> shapes = {};  ///< "weight: [2, 3] in the state, [3, 2] in the module"
  LoadReport report = {};
};

Match match(const StateDict& own, const StateDict& state, const LoadOptions& options) {
  const std::size_t strip = prefix_to_strip(state, own, options.strip_prefix);
  const std::set<std::string_view> left_out(options.leave_out.begin(), options.leave_out.end());
  std::unordered_map<std::string_view, const at::Tensor*> given;
  for (const auto& [name, tensor] : state)
    given.emplace(std::string_view(name).substr(strip), &tensor);

  Match result;
  for (const auto& [name, tensor] : own) {
    if (left_out.contains(name)) {
      given.erase(name);
      continue;
    }
    const auto found = given.find(name);
    if (found == given.end()) {
      result.report.missing.push_back(name);
    } else if (found->second->sizes() != tensor.sizes()) {
      result.shapes.push_back(text(name, ": ", shape_text(*found->second), " in the state, ",
                                   shape_text(tensor), " in the module"));
    } else {
      result.copies.emplace_back(tensor, *found->second);
    }
    if (found != given.end()) given.erase(found);
  }
  for (const auto& [name, tensor] : state) {
    const std::string_view stripped = std::string_view(name).substr(strip);
    if (given.contains(stripped) && !left_out.contains(stripped))
      result.report.unexpected.emplace_back(stripped);
  }
  return result;
}

std::string hint_for(const Match& match) {
  if (!match.shapes.empty()) return "build the module as it was saved, or leave these names out";
  if (!match.report.missing.empty() && !match.report.unexpected.empty()) {
    if (const auto near = core::nearest(match.report.missing[0], match.report.unexpected)) {
      return text("is ", *near, " of the state meant for ", match.report.missing[0], "?");
    }
  }
  return "build the module as it was saved, or load with strict = false";
}

}  // namespace

StateDict state_dict(const torch::nn::Module& module) {
  StateDict state;
  collect(module, "", state);
  return state;
}

LoadReport load_into(torch::nn::Module& module, const StateDict& state,
                     const LoadOptions& options) {
  Match matched = match(state_dict(module), state, options);
  std::vector<std::string> parts;
  if (options.strict) {
    tell(parts, matched.report.missing, "missing");
    tell(parts, matched.report.unexpected, "unexpected");
  }
  tell(parts, matched.shapes, "of another shape");
  if (!parts.empty()) {
    throw Error(Code::invalid_argument,
                text("load a state of ", state.size(), " tensors into ", module.name(), ": ",
                     core::joined(parts, "; ")),
                hint_for(matched));
  }
  const torch::NoGradGuard no_grad;
  for (auto& [own, given] : matched.copies) own.copy_(given);
  return std::move(matched.report);
}

}  // namespace yoke::checkpoint
