#include "image_data.hpp"

#include <utility>
#include <vector>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/data/idx_images.hpp"
#include "yoke/data/synthetic.hpp"

namespace yoke::train {
namespace {

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

}  // namespace

std::shared_ptr<const data::Dataset> evaluation_data(const start::DataSource& source) {
  if (source.synthetic) {
    return std::make_shared<const Rest>(
        synthetic(source.num_classes, kSyntheticTraining + kSyntheticValidation),
        kSyntheticTraining);
  }
  const data::IdxImagesOptions options{.normalise = source.normalise,
                                       .num_classes = source.num_classes};
  return std::make_shared<const data::IdxImages>(source.valid, source.valid_split, options);
}

ImageData training_data(const start::DataSource& source) {
  ImageData data{.training = nullptr, .validation = evaluation_data(source)};
  if (source.synthetic) {
    data.training = synthetic(source.num_classes, kSyntheticTraining);
  } else {
    data.training = std::make_shared<const data::IdxImages>(
        source.train, data::Split::train,
        data::IdxImagesOptions{.normalise = source.normalise, .num_classes = source.num_classes});
  }
  return data;
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
