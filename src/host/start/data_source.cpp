#include "yoke/start/data_source.hpp"

#include <string>
#include <utility>

#include "yoke/core/error.hpp"

namespace yoke::start {
namespace {

namespace fs = std::filesystem;
using feed::LabelledImages;
using feed::Split;

constexpr const char* kFashionMnist = "fashion-mnist";
constexpr const char* kSynthetic = "synthetic";
constexpr std::int64_t kSyntheticClasses = 10;

fs::path folder_of(const settings::TrainSettings& values) {
  return values.data == kFashionMnist ? fs::path(feed::kFashionMnistFolder) : fs::path(values.data);
}

void find_validation(DataSource& source, const settings::TrainSettings& values) {
  source.valid = values.valid.empty() ? source.train : fs::path(values.valid);
  try {
    (void)LabelledImages::find(source.valid, Split::test, source.num_classes);
    return;
  } catch (const Error& error) {
    // A folder that was made for evaluation may hold its images under the names of a training part.
    if (error.code() != Code::not_found || values.valid.empty()) throw;
  }
  source.valid_split = Split::train;
  (void)LabelledImages::find(source.valid, source.valid_split, source.num_classes);
}

DataSource synthetic(const settings::TrainSettings& values) {
  return {.synthetic = true,
          .num_classes = values.num_classes > 0 ? values.num_classes : kSyntheticClasses};
}

}  // namespace

DataSource find_training_data(const settings::TrainSettings& values) {
  if (values.data == kSynthetic) return synthetic(values);
  DataSource source{.train = folder_of(values)};
  source.num_classes =
      LabelledImages::find(source.train, Split::train, values.num_classes).num_classes();
  find_validation(source, values);
  return source;
}

DataSource find_evaluation_data(const settings::TrainSettings& values) {
  if (values.data == kSynthetic) return synthetic(values);
  DataSource source{.train = folder_of(values), .num_classes = values.num_classes};
  find_validation(source, values);
  return source;
}

}  // namespace yoke::start
