#include "image_data.hpp"

#include <utility>
#include <vector>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/data/idx_images.hpp"
#include "yoke/data/images.hpp"
#include "yoke/data/mix.hpp"
#include "yoke/data/synthetic.hpp"

namespace yoke::train {
namespace {

namespace transforms = feed::transforms;

constexpr std::int64_t kSyntheticTraining = 8192;
constexpr std::int64_t kSyntheticValidation = 1024;

/// The samples of another set from `first` on.
class Rest final : public data::Dataset {
 public:
  Rest(std::shared_ptr<const data::Dataset> whole, std::int64_t first)
      : whole_(std::move(whole)), first_(first) {}

  [[nodiscard]] std::int64_t size() const override { return whole_->size() - first_; }
  [[nodiscard]] std::int64_t num_classes() const override { return whole_->num_classes(); }
  [[nodiscard]] data::SampleLayout layout() const override { return whole_->layout(); }
  void fill(const data::Request& request, const data::Rows& rows) const override {
    std::vector<std::int64_t> indices(request.indices.begin(), request.indices.end());
    for (std::int64_t& index : indices) index += first_;
    data::Request shifted = request;
    shifted.indices = indices;
    whole_->fill(shifted, rows);
  }
  [[nodiscard]] std::int64_t rows_at_once() const override { return whole_->rows_at_once(); }
  [[nodiscard]] std::uint64_t fingerprint() const override { return whole_->fingerprint(); }

 private:
  std::shared_ptr<const data::Dataset> whole_;
  std::int64_t first_;
};

std::shared_ptr<const data::Dataset> synthetic(std::int64_t classes, std::int64_t length) {
  return std::make_shared<const data::Synthetic>(
      data::SyntheticOptions{.classes = classes, .length = length});
}

feed::Interpolation interpolation_of(const settings::TrainSettings& values) {
  switch (values.interpolation) {
    case settings::Interpolation::bilinear: return feed::Interpolation::bilinear;
    case settings::Interpolation::bicubic: return feed::Interpolation::bicubic;
    case settings::Interpolation::nearest: return feed::Interpolation::nearest;
  }
  throw Error(Code::internal, "an interpolation without a meaning");
}

feed::BadSamples bad_samples_of(const settings::TrainSettings& values) {
  switch (values.bad_samples) {
    case settings::BadSamples::raise: return feed::BadSamples::raise;
    case settings::BadSamples::skip: return feed::BadSamples::skip;
    case settings::BadSamples::substitute: return feed::BadSamples::substitute;
  }
  throw Error(Code::internal, "a policy for bad samples without a meaning");
}

data::ImageSteps training_steps(const start::DataSource& source,
                                const settings::TrainSettings& values) {
  data::ImageSteps steps{transforms::RandomResizedCrop{.height = values.train_crop_size,
                                                       .interpolation = interpolation_of(values)},
                         transforms::RandomHorizontalFlip{}};
  if (values.auto_augment == settings::AutoAugment::ra)
    steps.push_back(transforms::RandAugment{.magnitude = values.ra_magnitude});
  steps.push_back(source.normalize);
  return steps;
}

data::ImageSteps evaluation_steps(const start::DataSource& source,
                                  const settings::TrainSettings& values) {
  return {
      transforms::Resize{.size = values.val_resize_size, .interpolation = interpolation_of(values)},
      transforms::CenterCrop{.height = values.val_crop_size}, source.normalize};
}

data::ImagesOptions images_options(const settings::TrainSettings& values,
                                   const OnBadSample& on_bad) {
  return {.exif = values.exif == settings::Exif::apply ? feed::Exif::apply : feed::Exif::ignore,
          .bad_samples = bad_samples_of(values),
          .most_bad = values.most_bad,
          .on_bad = on_bad};
}

}  // namespace

std::shared_ptr<const data::Dataset> evaluation_data(const start::DataSource& source,
                                                     const settings::TrainSettings& values,
                                                     const OnBadSample& on_bad) {
  if (source.kind == start::DataKind::images) {
    data::ImagesOptions options = images_options(values, on_bad);
    options.classes = source.class_names;
    return std::make_shared<const data::Images>(source.valid_images,
                                                evaluation_steps(source, values), options);
  }
  if (source.kind == start::DataKind::synthetic) {
    return std::make_shared<const Rest>(
        synthetic(source.num_classes, kSyntheticTraining + kSyntheticValidation),
        kSyntheticTraining);
  }
  const data::IdxImagesOptions options{.normalise = source.normalise,
                                       .num_classes = source.num_classes};
  return std::make_shared<const data::IdxImages>(source.valid, source.valid_split, options);
}

ImageData training_data(const start::DataSource& source, const settings::TrainSettings& values,
                        const OnBadSample& on_bad) {
  ImageData data{.training = nullptr, .validation = evaluation_data(source, values, on_bad)};
  switch (source.kind) {
    case start::DataKind::synthetic:
      data.training = synthetic(source.num_classes, kSyntheticTraining);
      break;
    case start::DataKind::images:
      data.training = std::make_shared<const data::Images>(
          source.train_images, training_steps(source, values), images_options(values, on_bad));
      break;
    case start::DataKind::idx:
      data.training = std::make_shared<const data::IdxImages>(
          source.train, data::Split::train,
          data::IdxImagesOptions{.normalise = source.normalise, .num_classes = source.num_classes});
      break;
  }
  return data;
}

std::function<void(data::Batch&)> batch_transform(const settings::TrainSettings& values,
                                                  std::int64_t num_classes) {
  const data::MixUp mix_up{
      .alpha = values.mixup_alpha, .num_classes = num_classes, .seed = values.seed};
  const data::CutMix cut_mix{
      .alpha = values.cutmix_alpha, .num_classes = num_classes, .seed = values.seed};
  if (values.mixup_alpha > 0 && values.cutmix_alpha > 0)
    return data::MixUpOrCutMix{mix_up, cut_mix};
  if (values.mixup_alpha > 0) return mix_up;
  if (values.cutmix_alpha > 0) return cut_mix;
  return {};
}

models::InputOptions input_options(const data::Dataset& images, std::int64_t num_classes) {
  const std::vector<std::int64_t> sizes = images.layout().input_sizes;
  if (sizes.size() != 3 || sizes[1] != sizes[2]) {
    std::vector<std::string> named;
    for (const std::int64_t size : sizes) named.push_back(std::to_string(size));
    throw Error(Code::unsupported,
                core::text("build a model for samples of shape [", core::joined(named), ']'),
                "give square images [channels, size, size]");
  }
  return {.num_classes = num_classes, .in_channels = sizes[0], .image_size = sizes[1]};
}

}  // namespace yoke::train
