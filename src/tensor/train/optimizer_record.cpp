#include "optimizer_record.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::train {
namespace {

using core::Json;
using optim::OptionValue;

Json to_json(const OptionValue& value) {
  return std::visit(
      [](const auto& content) -> Json {
        using Content = std::remove_cvref_t<decltype(content)>;
        if constexpr (std::is_same_v<Content, std::monostate>) {
          return nullptr;
        } else if constexpr (std::is_same_v<Content, std::pair<double, double>>) {
          return Json::array({content.first, content.second});
        } else {
          return content;
        }
      },
      value);
}

OptionValue option_from(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_array()) return std::pair{json.at(0).get<double>(), json.at(1).get<double>()};
  return std::monostate{};
}

std::map<std::int64_t, std::string> called(const optim::OptimizerState& state) {
  std::map<std::int64_t, std::string> names;
  for (const optim::GroupState& group : state.param_groups) {
    for (std::size_t i = 0; i < group.params.size(); ++i) {
      names[group.params[i]] =
          group.param_names.empty() ? std::to_string(group.params[i]) : group.param_names[i];
    }
  }
  return names;
}

}  // namespace

OptimizerRecord to_record(const optim::OptimizerState& state) {
  OptimizerRecord record{.tensors = {}, .groups = Json::array()};
  for (const optim::GroupState& group : state.param_groups) {
    Json options = Json::object();
    for (const auto& [name, value] : group.options) options[name] = to_json(value);
    record.groups.push_back(
        {{"options", options}, {"params", group.params}, {"param_names", group.param_names}});
  }
  const auto names = called(state);
  for (const auto& [key, slots] : state.state) {
    for (const auto& [slot, tensor] : slots)
      record.tensors.emplace_back(core::text(names.at(key), ".", slot), tensor);
  }
  return record;
}

optim::OptimizerState from_record(const OptimizerRecord& record) try {
  optim::OptimizerState state;
  for (const Json& group : record.groups) {
    optim::GroupState& made = state.param_groups.emplace_back();
    made.params = group.at("params").get<std::vector<std::int64_t>>();
    made.param_names = group.at("param_names").get<std::vector<std::string>>();
    for (const auto& [name, value] : group.at("options").items())
      made.options.emplace_back(name, option_from(value));
  }
  std::map<std::string, std::int64_t> keys;
  for (const auto& [key, name] : called(state)) keys[name] = key;
  for (const auto& [name, tensor] : record.tensors) {
    const std::size_t dot = name.rfind('.');
    const auto key = keys.find(name.substr(0, dot));
    if (dot == std::string::npos || key == keys.end()) {
      throw Error(Code::corrupt_data,
                  core::text("read the optimizer's state: ", name, " is of no parameter"));
    }
    state.state[key->second].emplace_back(name.substr(dot + 1), tensor);
  }
  return state;
} catch (const nlohmann::json::exception& error) {
  throw Error(Code::corrupt_data, "read the optimizer's state: a member is missing")
      .caused_by(error);
}

}  // namespace yoke::train
