#include "yoke/start/data_source.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <system_error>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"
#include "yoke/feed/encoded_images.hpp"
#include "yoke/start/run_folder.hpp"

namespace yoke::start {
namespace {

namespace fs = std::filesystem;
using feed::LabelledImages;
using feed::Split;

constexpr const char* kSynthetic = "synthetic";
constexpr std::int64_t kSyntheticClasses = 10;

fs::path folder_of(const settings::TrainSettings& values) {
  return values.data == feed::kFashionMnist ? fs::path(feed::kFashionMnistFolder)
                                            : fs::path(values.data);
}

LabelledImages find_validation(DataSource& source, const settings::TrainSettings& values) {
  source.valid = values.valid.empty() ? source.train : fs::path(values.valid);
  try {
    return LabelledImages::find(source.valid, Split::test, source.num_classes);
  } catch (const Error& error) {
    // A folder that was made for evaluation may hold its images under the names of a training part.
    if (error.code() != Code::not_found || values.valid.empty()) throw;
  }
  source.valid_split = Split::train;
  return LabelledImages::find(source.valid, source.valid_split, source.num_classes);
}

std::string size_text(const LabelledImages& images) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : images.images().dims()) sizes.push_back(std::to_string(size));
  sizes.erase(sizes.begin());
  return core::joined(sizes, "x");
}

void require_same_size(const LabelledImages& training, const LabelledImages& validation) {
  if (size_text(training) == size_text(validation)) return;
  throw Error(Code::invalid_argument,
              core::text("read ", validation.images().path().string(), ": images of ",
                         size_text(validation), ", those to train on have ", size_text(training)),
              "evaluate on images of the size that the model is trained for");
}

float one_number(const char* option, const std::vector<double>& numbers) {
  if (numbers.size() == 1) return static_cast<float>(numbers.front());
  throw Error(Code::invalid_argument,
              core::text(option, ": ", numbers.size(), " numbers for pixels in IDX files"),
              "give one for all channels");
}

feed::Normalise normalise_of(const settings::TrainSettings& values, const fs::path& training) {
  feed::Normalise normalise = feed::default_normalise(training);
  if (!values.mean.empty()) normalise.mean = one_number("--mean", values.mean);
  if (!values.std.empty()) normalise.std = one_number("--std", values.std);
  return normalise;
}

void take_channels(const std::vector<double>& numbers, std::array<float, 3>& channels) {
  if (numbers.empty()) return;
  for (std::size_t channel = 0; channel < channels.size(); ++channel)
    channels[channel] = static_cast<float>(numbers.size() == 1 ? numbers[0] : numbers.at(channel));
}

feed::transforms::Normalize normalize_of(const settings::TrainSettings& values) {
  feed::transforms::Normalize normalize;
  take_channels(values.mean, normalize.mean);
  take_channels(values.std, normalize.std);
  return normalize;
}

void require_weights(const settings::TrainSettings& values) {
  std::error_code error;
  if (values.weights.empty() || fs::exists(values.weights, error)) return;
  throw Error(Code::not_found, core::text("load weights: no file or folder ", values.weights),
              "give a weights file, or the folder of a finished run");
}

DataSource synthetic(const settings::TrainSettings& values) {
  if (!values.valid.empty()) {
    throw Error(
        Code::invalid_argument,
        core::text("--valid ", values.valid, ": synthetic images bring their own test part"),
        "leave --valid out");
  }
  return {.kind = DataKind::synthetic,
          .num_classes = values.num_classes > 0 ? values.num_classes : kSyntheticClasses};
}

// ROOT/train and ROOT/val, as ImageNet lies, in place of one of them.
bool holds_both_parts(const fs::path& folder) {
  std::error_code none;
  return fs::is_directory(folder / "train", none) &&
         std::ranges::any_of(
             std::array{"val", "valid", "validation", "test"},
             [&](const char* part) { return fs::is_directory(folder / part, none); });
}

std::unique_ptr<feed::EncodedImages> open_training(const settings::TrainSettings& values) {
  if (holds_both_parts(values.data)) {
    throw Error(Code::invalid_argument,
                core::text("--data ", values.data, ": it holds a training and another part"),
                core::text("give --data ", (fs::path(values.data) / "train").string(),
                           ", and the other part as --valid"));
  }
  auto images = feed::open_images(values.data);
  if (images->num_classes() > 0) return images;
  throw Error(Code::invalid_argument,
              core::text("train on ", values.data, ": its images have no labels"),
              "give each a class: as a folder, or by a member or key .cls");
}

std::int64_t classes_of(const feed::EncodedImages& training, int wanted) {
  const std::int64_t found = training.num_classes();
  if (wanted == 0 || wanted >= found) return std::max<std::int64_t>(wanted, found);
  throw Error(
      Code::invalid_argument,
      core::text("--num-classes ", wanted, ": the training images have ", found, " classes"),
      "leave it out, or give as many or more");
}

DataSource find_image_files(const settings::TrainSettings& values) {
  if (values.valid.empty()) {
    throw Error(Code::invalid_argument,
                core::text("--data ", values.data, ": no images to evaluate on"),
                "give them as --valid PATH");
  }
  const std::shared_ptr<const feed::EncodedImages> training = open_training(values);
  DataSource source{.kind = DataKind::images,
                    .train = values.data,
                    .valid = values.valid,
                    .num_classes = classes_of(*training, values.num_classes),
                    .normalize = normalize_of(values),
                    .class_names = training->class_names(),
                    .train_images = training};
  source.valid_images = feed::open_images(source.valid, {.classes = source.class_names});
  if (source.valid_images->num_classes() <= source.num_classes) return source;
  throw Error(Code::invalid_argument,
              core::text("--valid ", values.valid, ": labels up to ",
                         source.valid_images->num_classes() - 1, ", but training has ",
                         source.num_classes, " classes"),
              "give both parts the same numbers");
}

// What training numbered, as far as anybody knows.
std::vector<std::string> trained_classes(const settings::TrainSettings& values) {
  std::error_code none;
  const fs::path kept = fs::path(values.weights) / RunFiles::kClasses;
  if (!values.weights.empty() && fs::exists(kept, none))
    return core::split(core::trimmed(core::read_file(kept)), '\n');
  const bool is_there = fs::exists(values.data, none) && !holds_both_parts(values.data);
  if (values.valid.empty() || !is_there ||
      data_kind(values.data, values.data_format) != DataKind::images)
    return {};
  return feed::open_images(values.data)->class_names();
}

DataSource find_image_files_to_evaluate(const settings::TrainSettings& values) {
  DataSource source{.kind = DataKind::images,
                    .train = values.data,
                    .valid = values.valid.empty() ? values.data : values.valid,
                    .normalize = normalize_of(values),
                    .class_names = trained_classes(values)};
  source.valid_images = feed::open_images(source.valid, {.classes = source.class_names});
  if (source.class_names.empty()) source.class_names = source.valid_images->class_names();
  source.num_classes =
      std::max<std::int64_t>(values.num_classes, source.valid_images->num_classes());
  return source;
}

}  // namespace

DataKind data_kind(const std::string& data, settings::DataFormat format) {
  if (data == kSynthetic) return DataKind::synthetic;
  if (data == feed::kFashionMnist) return DataKind::idx;
  switch (format) {
    case settings::DataFormat::idx: return DataKind::idx;
    case settings::DataFormat::images: return DataKind::images;
    case settings::DataFormat::detect: break;
  }
  if (LabelledImages::is_there(data)) return DataKind::idx;
  return feed::holds_images(data) ? DataKind::images : DataKind::idx;
}

DataKind kind_to_evaluate(const settings::TrainSettings& values) {
  const bool on_valid = !values.valid.empty() && values.data != kSynthetic;
  return data_kind(on_valid ? values.valid : values.data, values.data_format);
}

DataSource find_training_data(const settings::TrainSettings& values) {
  require_weights(values);
  switch (data_kind(values.data, values.data_format)) {
    case DataKind::synthetic: return synthetic(values);
    case DataKind::images: return find_image_files(values);
    case DataKind::idx: break;
  }
  DataSource source{.train = folder_of(values)};
  source.normalise = normalise_of(values, source.train);
  const LabelledImages training =
      LabelledImages::find(source.train, Split::train, values.num_classes);
  source.num_classes = training.num_classes();
  require_same_size(training, find_validation(source, values));
  return source;
}

DataSource find_evaluation_data(const settings::TrainSettings& values) {
  require_weights(values);
  switch (kind_to_evaluate(values)) {
    case DataKind::synthetic: return synthetic(values);
    case DataKind::images: return find_image_files_to_evaluate(values);
    case DataKind::idx: break;
  }
  DataSource source{.train = folder_of(values), .num_classes = values.num_classes};
  source.normalise = normalise_of(values, source.train);
  (void)find_validation(source, values);
  return source;
}

std::string class_numbers_text(const std::vector<std::string>& class_names) {
  constexpr std::size_t kMostShown = 10;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(class_names.size(), kMostShown); ++i)
    shown.push_back(core::text(class_names[i], " = ", i));
  const std::size_t left = class_names.size() - shown.size();
  return core::joined(shown) + (left > 0 ? core::text(" and ", left, " more") : "");
}

}  // namespace yoke::start
