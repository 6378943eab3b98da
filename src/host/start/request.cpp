#include "yoke/start/request.hpp"

#include <array>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "yoke/feed/labelled_images.hpp"
#include "yoke/feed/transforms.hpp"
#include "yoke/settings/report.hpp"
#include "yoke/start/data_source.hpp"

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

template <class Floats>
std::vector<double> all_as_written(const Floats& numbers) {
  std::vector<double> written;
  for (const float number : numbers) written.push_back(as_written(number));
  return written;
}

DataKind kind_of_data(const settings::TrainSettings& values, settings::Purpose purpose) {
  return purpose == settings::Purpose::training ? data_kind(values.data, values.data_format)
                                                : kind_to_evaluate(values);
}

/// How pixels become numbers follows from what the data are: another copy or another part of them
/// may look different.
void settle_pixels(settings::Settings& settings, settings::Purpose purpose) {
  std::vector<double> mean;
  std::vector<double> std;
  const settings::TrainSettings values = settings::train_settings(settings, purpose);
  switch (kind_of_data(values, purpose)) {
    case DataKind::synthetic: return;
    case DataKind::idx: {
      const feed::Normalise normalise = feed::default_normalise(values.data);
      mean = all_as_written(std::array{normalise.mean});
      std = all_as_written(std::array{normalise.std});
      break;
    }
    case DataKind::images: {
      const feed::transforms::Normalize normalize;
      mean = all_as_written(normalize.mean);
      std = all_as_written(normalize.std);
      settings.settle("val-crop-size", std::int64_t{values.val_crop_size});
      settings.settle("val-resize-size", std::int64_t{values.val_resize_size});
      break;
    }
  }
  if (!settings.is_set("mean")) settings.settle("mean", mean);
  if (!settings.is_set("std")) settings.settle("std", std);
}

/// A recipe may be read in another folder, and for a copy of the data under another name: what it
/// says must not depend on either.
void settle(settings::Settings& settings, settings::Purpose purpose) {
  for (const char* key : {"data", "valid", "weights"}) {
    if (!settings.is_set(key)) continue;
    const fs::path path = settings.text(key);
    std::error_code error;
    if (path.is_relative() && fs::exists(path, error) && !is_data_name(path))
      settings.settle(key, fs::absolute(path).lexically_normal().string());
  }
  settle_pixels(settings, purpose);
}

Request answered(settings::Settings settings, settings::Purpose purpose) {
  Request request{.settings = std::move(settings)};
  if (request.settings.wants_help()) {
    request.answer = settings::help_text(request.settings.schema());
    return request;
  }
  settle(request.settings, purpose);
  request.values = settings::train_settings(request.settings, purpose);
  if (request.values.print_config) request.answer = settings::print_config_text(request.settings);
  return request;
}

}  // namespace

Request train_request(const std::vector<std::string>& words, const core::EnvironmentMap& variables,
                      const settings::Schema& schema) {
  return answered(settings::resolve_train(schema, {.arguments = words, .variables = variables}),
                  settings::Purpose::training);
}

Request eval_request(const std::vector<std::string>& words, const core::EnvironmentMap& variables,
                     const settings::Schema& schema) {
  return answered(settings::resolve_eval(schema, {.arguments = words, .variables = variables}),
                  settings::Purpose::evaluation);
}

}  // namespace yoke::start
