#include <utility>

#include "yoke/cluster/coordinator.hpp"

namespace yoke::cluster {

using core::Json;
using launch::Failure;
using launch::Outcome;

static std::vector<Failure> failures_at(const Json& object, const char* key) {
  std::vector<Failure> failures;
  if (const auto found = object.find(key); found != object.end() && found->is_array()) {
    for (const Json& one : *found) failures.push_back(launch::failure_from_json(one));
  }
  return failures;
}

Json outcome_to_json(const Outcome& outcome) {
  Json follow_ups = Json::array();
  for (const Failure& failure : outcome.follow_ups) follow_ups.push_back(launch::to_json(failure));
  Json earlier = Json::array();
  for (const Failure& failure : outcome.earlier) earlier.push_back(launch::to_json(failure));
  Json object{{"exit_code", outcome.exit_code},
              {"follow_ups", follow_ups},
              {"earlier", earlier},
              {"stopped", outcome.stopped}};
  if (outcome.root_cause) object["root_cause"] = launch::to_json(*outcome.root_cause);
  if (outcome.furthest_step) object["furthest_step"] = *outcome.furthest_step;
  return object;
}

Outcome outcome_from_json(const Json& object) {
  Outcome outcome;
  if (!object.is_object()) return outcome;
  outcome.exit_code = object.value("exit_code", 1);
  outcome.follow_ups = failures_at(object, "follow_ups");
  outcome.earlier = failures_at(object, "earlier");
  outcome.stopped = object.value("stopped", std::vector<int>{});
  if (object.contains("root_cause"))
    outcome.root_cause = launch::failure_from_json(object["root_cause"]);
  if (object.contains("furthest_step"))
    outcome.furthest_step = object["furthest_step"].get<std::uint64_t>();
  return outcome;
}

}  // namespace yoke::cluster
