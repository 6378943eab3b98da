#include "yoke/start/request.hpp"

#include <array>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "yoke/feed/labelled_images.hpp"
#include "yoke/settings/report.hpp"

namespace yoke::start {
namespace {

namespace fs = std::filesystem;

/// The shortest decimal that is this float: 0.286, not 0.2860000133514404.
double as_written(float number) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  double written = number;
  std::from_chars(digits.data(), end, written);
  return written;
}

bool is_data_name(const fs::path& path) {
  return path == feed::kFashionMnist || path == "synthetic";
}

/// A recipe may be read in another folder, and for a copy of the data under another name: what it
/// says must not depend on either.
void settle(settings::Settings& settings) {
  for (const char* key : {"data", "valid", "weights"}) {
    if (!settings.is_set(key)) continue;
    const fs::path path = settings.text(key);
    std::error_code error;
    if (path.is_relative() && fs::exists(path, error) && !is_data_name(path))
      settings.settle(key, fs::absolute(path).lexically_normal().string());
  }
  if (settings.text("data") == "synthetic") return;
  const feed::Normalise normalise = feed::default_normalise(settings.text("data"));
  if (!settings.is_set("mean")) settings.settle("mean", as_written(normalise.mean));
  if (!settings.is_set("std")) settings.settle("std", as_written(normalise.std));
}

Request answered(settings::Settings settings) {
  Request request{.settings = std::move(settings)};
  if (request.settings.wants_help()) {
    request.answer = settings::help_text(request.settings.schema());
    return request;
  }
  settle(request.settings);
  request.values = settings::train_settings(request.settings);
  if (request.values.print_config) request.answer = settings::print_config_text(request.settings);
  return request;
}

}  // namespace

Request train_request(const std::vector<std::string>& words, const core::EnvironmentMap& variables,
                      const settings::Schema& schema) {
  return answered(settings::resolve_train(schema, {.arguments = words, .variables = variables}));
}

Request eval_request(const std::vector<std::string>& words, const core::EnvironmentMap& variables,
                     const settings::Schema& schema) {
  return answered(settings::resolve_eval(schema, {.arguments = words, .variables = variables}));
}

}  // namespace yoke::start
