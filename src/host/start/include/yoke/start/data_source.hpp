#pragma once

#include <cstdint>
#include <filesystem>

#include "yoke/feed/labelled_images.hpp"
#include "yoke/settings/train_settings.hpp"

namespace yoke::start {

/// Where the samples of --data and --valid lie.
struct DataSource {
  bool synthetic = false;  ///< made up; the rest is empty
  std::filesystem::path train{};
  std::filesystem::path valid{};
  feed::Split valid_split = feed::Split::test;
  std::int64_t num_classes = 0;  ///< --num-classes, else those of the training labels
  feed::Normalise normalise{};   ///< of both parts: --mean and --std, else the training data's own
};

/// Opens the files and checks that they belong together, so that what is wrong with them is said
/// once and before ranks start. Unpacks .gz files into the cache where that was not done yet.
/// Errors: those of feed::LabelledImages::find(); invalid_argument where the two parts hold images
/// of different sizes; not_found where --weights is not there.
[[nodiscard]] DataSource find_training_data(const settings::TrainSettings& values);

/// The same for `yoke eval`: only what it evaluates on.
[[nodiscard]] DataSource find_evaluation_data(const settings::TrainSettings& values);

}  // namespace yoke::start
