#include "model_setup.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <ATen/Context.h>

#include "yoke/checkpoint/files.hpp"
#include "yoke/checkpoint/state_dict.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/models/image_classifier.hpp"
#include "yoke/models/layout.hpp"
#include "yoke/start/run_folder.hpp"

namespace yoke::train {
namespace {

namespace fs = std::filesystem;
using core::text;

/// How many classes the saved head has; nothing where the model is of a user's own kind or the
/// state has no such head.
std::optional<std::int64_t> saved_classes(const torch::nn::Module& model,
                                          const checkpoint::StateDict& state) {
  const auto* classifier = dynamic_cast<const models::ImageClassifier*>(&model);
  if (classifier == nullptr) return std::nullopt;
  const std::string weight = classifier->head_name() + ".weight";
  for (const auto& [name, tensor] : state) {
    if ((name == weight || name == "module." + weight) && tensor.dim() > 0) return tensor.size(0);
  }
  return std::nullopt;
}

void load(torch::nn::Module& model, const checkpoint::StateDict& state, const fs::path& file,
          const std::vector<std::string>& leave_out = {}) {
  try {
    checkpoint::load_into(model, state, {.leave_out = leave_out});
  } catch (const Error& error) {
    throw error.within("load weights of " + file.string());
  }
}

void load_to_train(torch::nn::Module& model, const fs::path& file) {
  const checkpoint::StateDict state = checkpoint::load_state_dict(file);
  const std::optional<std::int64_t> saved = saved_classes(model, state);
  const auto* classifier = dynamic_cast<const models::ImageClassifier*>(&model);
  if (!saved || *saved == classifier->num_classes()) return load(model, state, file);
  core::say(core::Level::info,
            text("new head ", classifier->head_name(), " for ", classifier->num_classes(),
                 " classes; the weights have ", *saved));
  load(model, state, file, models::head_names(*classifier));
}

void freeze(torch::nn::Module& model, const std::vector<std::string>& patterns) {
  std::vector<std::string> names;
  for (const auto& item : model.named_parameters()) names.push_back(item.key());
  for (const std::string& pattern : patterns) {
    bool fits = false;
    for (auto& item : model.named_parameters()) {
      if (!core::matches_pattern(item.key(), pattern)) continue;
      item.value().set_requires_grad(false);
      fits = true;
    }
    if (!fits) {
      throw Error(Code::invalid_argument,
                  text("freeze ", pattern, ": no parameter has such a name"),
                  core::unknown_name_hint(pattern, names));
    }
  }
  const std::vector<at::Tensor> parameters = model.parameters();
  if (std::none_of(parameters.begin(), parameters.end(),
                   [](const at::Tensor& p) { return p.requires_grad(); })) {
    throw Error(Code::invalid_argument, "freeze: no parameter is left to train",
                "freeze fewer, or use yoke eval");
  }
}

AnyModule placed(AnyModule model, at::Device device) {
  model->to(device);
  return model;
}

}  // namespace

fs::path weights_file(const fs::path& file_or_run) {
  std::error_code error;
  if (!fs::is_directory(file_or_run, error)) return file_or_run;
  fs::path file = file_or_run / start::RunFiles::kStateDict;
  if (!fs::exists(file, error)) {
    throw Error(
        Code::not_found,
        text("load weights: ", file_or_run.string(), " holds no ", start::RunFiles::kStateDict),
        "give a finished run's folder, or a weights file");
  }
  return file;
}

AnyModule model_to_train(const settings::TrainSettings& values, const ModelSet& models,
                         const models::InputOptions& input, at::Device device) {
  at::manual_seed(values.seed);  // common: replicas begin equal
  AnyModule model = models.make(values.model, input);
  if (!values.weights.empty()) load_to_train(*model, weights_file(values.weights));
  if (!values.freeze.empty()) freeze(*model, values.freeze);
  return placed(std::move(model), device);
}

AnyModule model_to_evaluate(const settings::TrainSettings& values, const ModelSet& models,
                            const models::InputOptions& input, at::Device device) {
  const fs::path file = weights_file(values.weights);
  const checkpoint::StateDict state = checkpoint::load_state_dict(file);
  AnyModule model = models.make(values.model, input);
  const std::int64_t classes = saved_classes(*model, state).value_or(input.num_classes);
  if (classes < input.num_classes) {
    throw Error(Code::invalid_argument,
                text("evaluate ", file.string(), ": its head has ", classes,
                     " classes, the data have ", input.num_classes),
                "give the data that the weights were trained for");
  }
  if (classes != input.num_classes) {
    models::InputOptions other = input;
    other.num_classes = classes;
    model = models.make(values.model, other);
  }
  load(*model, state, file);
  return placed(std::move(model), device);
}

}  // namespace yoke::train
