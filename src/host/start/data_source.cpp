#include "yoke/start/data_source.hpp"

#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

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

feed::Normalise normalise_of(const settings::TrainSettings& values, const fs::path& training) {
  feed::Normalise normalise = feed::default_normalise(training);
  if (values.mean) normalise.mean = static_cast<float>(*values.mean);
  if (values.std) normalise.std = static_cast<float>(*values.std);
  return normalise;
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
  return {.synthetic = true,
          .num_classes = values.num_classes > 0 ? values.num_classes : kSyntheticClasses};
}

}  // namespace

DataSource find_training_data(const settings::TrainSettings& values) {
  require_weights(values);
  if (values.data == kSynthetic) return synthetic(values);
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
  if (values.data == kSynthetic) return synthetic(values);
  DataSource source{.train = folder_of(values), .num_classes = values.num_classes};
  source.normalise = normalise_of(values, source.train);
  (void)find_validation(source, values);
  return source;
}

}  // namespace yoke::start
