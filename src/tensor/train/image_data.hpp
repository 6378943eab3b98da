#pragma once

#include <functional>
#include <memory>

#include "bad_sample_list.hpp"
#include "yoke/data/batch.hpp"
#include "yoke/data/dataset.hpp"
#include "yoke/models/registry.hpp"
#include "yoke/start/data_source.hpp"

namespace yoke::train {

// The parts of one set of labelled images.
struct ImageData {
  std::shared_ptr<const data::Dataset> training;  // null for evaluation alone
  std::shared_ptr<const data::Dataset> validation;
};

[[nodiscard]] ImageData training_data(const start::DataSource& source,
                                      const settings::TrainSettings& values,
                                      const OnBadSample& on_bad);
[[nodiscard]] std::shared_ptr<const data::Dataset> evaluation_data(
    const start::DataSource& source, const settings::TrainSettings& values,
    const OnBadSample& on_bad);

// --mixup-alpha and --cutmix-alpha; empty where neither is set.
[[nodiscard]] std::function<void(data::Batch&)> batch_transform(
    const settings::TrainSettings& values, std::int64_t num_classes);

// What the data say about the model. Errors: unsupported for samples that are no square images.
[[nodiscard]] models::InputOptions input_options(const data::Dataset& images,
                                                 std::int64_t num_classes);

}  // namespace yoke::train
