#include "yoke/start/request.hpp"

#include <utility>

#include "yoke/settings/report.hpp"

namespace yoke::start {
namespace {

Request answered(settings::Settings settings) {
  Request request{.settings = std::move(settings)};
  if (request.settings.wants_help()) {
    request.answer = settings::help_text(request.settings.schema());
    return request;
  }
  request.values = settings::train_settings(request.settings);
  if (request.values.print_config) request.answer = settings::print_config_text(request.settings);
  return request;
}

}  // namespace

Request train_request(const std::vector<std::string>& words, const core::EnvironmentMap& variables,
                      const settings::Schema& schema) {
  return answered(settings::resolve(schema, {.arguments = words, .variables = variables}));
}

Request eval_request(const std::vector<std::string>& words, const core::EnvironmentMap& variables,
                     const settings::Schema& schema) {
  return answered(settings::resolve_eval(schema, {.arguments = words, .variables = variables}));
}

}  // namespace yoke::start
