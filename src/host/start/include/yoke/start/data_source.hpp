#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "yoke/feed/encoded_images.hpp"
#include "yoke/feed/labelled_images.hpp"
#include "yoke/feed/transforms.hpp"
#include "yoke/settings/train_settings.hpp"

namespace yoke::start {

enum class DataKind {
  idx,        ///< pixels in IDX files
  images,     ///< image files in class folders, tar shards or an LMDB
  synthetic,  ///< made up
};

/// What --data names, by the names and first bytes found there; idx where nothing is recognised.
[[nodiscard]] DataKind data_kind(const std::string& data, settings::DataFormat format);

/// What `yoke eval` looks at: --valid, else --data.
[[nodiscard]] DataKind kind_to_evaluate(const settings::TrainSettings& values);

/// Where the samples of --data and --valid lie.
struct DataSource {
  DataKind kind = DataKind::idx;
  std::filesystem::path train{};
  std::filesystem::path valid{};
  feed::Split valid_split = feed::Split::test;
  std::int64_t num_classes = 0;  ///< --num-classes, else those of the training labels
  /// Of both parts: --mean and --std, else the training data's own.
  feed::Normalise normalise{};              ///< idx
  feed::transforms::Normalize normalize{};  ///< images
  std::vector<std::string> class_names{};   ///< images, by label; none where labels have no names
  std::shared_ptr<const feed::EncodedImages> train_images{};  ///< images, but not for evaluation
  std::shared_ptr<const feed::EncodedImages> valid_images{};  ///< images
};

/// Opens the files and checks that they belong together, so that what is wrong with them is said
/// once and before ranks start. Unpacks .gz files into the cache where that was not done yet.
/// Errors: those of feed::LabelledImages::find() and feed::open_images(); invalid_argument where
/// the two parts hold IDX images of different sizes, and for image files without --valid; not_found
/// where --weights is not there.
[[nodiscard]] DataSource find_training_data(const settings::TrainSettings& values);

/// The same for `yoke eval`: only what it evaluates on. Classes are numbered as in the run folder
/// that --weights names, else as in --data, else as they are found.
[[nodiscard]] DataSource find_evaluation_data(const settings::TrainSettings& values);

/// "bird = 0, cat = 1", of many the first ten; for words to the user.
[[nodiscard]] std::string class_numbers_text(const std::vector<std::string>& class_names);

}  // namespace yoke::start
