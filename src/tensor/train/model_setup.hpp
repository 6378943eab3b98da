#pragma once

#include "yoke/settings/train_settings.hpp"
#include "yoke/train/any_module.hpp"
#include "yoke/train/main.hpp"

namespace yoke::train {

// The model to train, on `device`: made under the common seed, weights loaded, parameters frozen,
// layout set.
//
// --weights of another number of classes: all but the head is loaded, and one line says so
// (models::ImageClassifier). Errors: those of checkpoint::load_state_dict() and load_into();
// not_found for a run folder without weights;
//   invalid_argument for a --freeze pattern that fits no parameter, and where nothing is left to
//   train.
[[nodiscard]] AnyModule model_to_train(const settings::TrainSettings& values,
                                       const ModelSet& models, const models::InputOptions& input,
                                       at::Device device);

// The model of --weights, with the head that it was saved with.
// Errors: as above; invalid_argument where the data have more classes than the head.
[[nodiscard]] AnyModule model_to_evaluate(const settings::TrainSettings& values,
                                          const ModelSet& models, const models::InputOptions& input,
                                          at::Device device);

// The file that --weights FILE|RUN means.
[[nodiscard]] std::filesystem::path weights_file(const std::filesystem::path& file_or_run);

}  // namespace yoke::train
