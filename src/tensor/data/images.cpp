#include "yoke/data/images.hpp"

#include <cstddef>
#include <span>
#include <utility>

#include <ATen/Functions.h>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/feed/image_folder.hpp"

namespace yoke::data {
namespace {

namespace fs = std::filesystem;
using feed::transforms::Normalize;

std::unique_ptr<const feed::EncodedImages> open_folder(const fs::path& root,
                                                       const ImagesOptions& options) {
  feed::ImageFolderOptions folder{.allow_empty = options.allow_empty};
  if (!options.classes.empty()) folder.classes.emplace(options.classes);
  return std::make_unique<const feed::ImageFolder>(root, std::move(folder));
}

// A last step that is done on the device, in place of the threads.
std::optional<Normalize> taken_out(ImageSteps& steps) {
  if (steps.empty() || !std::holds_alternative<Normalize>(steps.back())) return std::nullopt;
  const Normalize normalize = std::get<Normalize>(steps.back());
  steps.pop_back();
  return normalize;
}

std::shared_ptr<const feed::ImageRows> make_rows(std::shared_ptr<const feed::EncodedImages> images,
                                                 ImageSteps steps, const ImagesOptions& options) {
  if (images->num_classes() == 0) {
    throw Error(Code::invalid_argument,
                core::text("read ", images->kind(), " ", images->origin(0), ": no labels"),
                "give each image a class: as a folder, or by a member or key .cls");
  }
  return std::make_shared<const feed::ImageRows>(
      std::move(images), feed::Transforms(std::move(steps)),
      feed::ImageRowsOptions{.decode = {.exif = options.exif},
                             .bad_samples = options.bad_samples,
                             .most_bad = options.most_bad,
                             .on_bad = options.on_bad});
}

// [1, 3, 1, 1] on the device of `like`.
at::Tensor by_channel(const std::array<float, 3>& values, float factor, const at::Tensor& like) {
  std::array<float, 3> scaled{};
  for (std::size_t i = 0; i < scaled.size(); ++i) scaled[i] = values[i] * factor;
  return at::tensor(scaled).view({1, 3, 1, 1}).to(like.device(), /*non_blocking=*/true);
}

}  // namespace

Images::Images(std::shared_ptr<const feed::EncodedImages> images, ImageSteps steps,
               const ImagesOptions& options)
    : num_classes_(0) {
  auto normalize = taken_out(steps);
  if (options.raw && normalize) {
    throw Error(Code::invalid_argument, "read images: Normalize, and raw bytes asked for",
                "leave one of the two out");
  }
  if (!options.raw) normalize_ = normalize.value_or(Normalize{});
  if (normalize_) (void)feed::Transforms({feed::transforms::CenterCrop{1}, *normalize_});
  rows_ = make_rows(std::move(images), std::move(steps), options);
  num_classes_ =
      std::max(rows_->images().num_classes(), static_cast<std::int64_t>(options.classes.size()));
}

Images::Images(const fs::path& path, ImageSteps steps, const ImagesOptions& options)
    : Images(
          feed::open_images(path, {.classes = options.classes, .allow_empty = options.allow_empty}),
          std::move(steps), options) {}

Images::Images(const fs::path& path, feed::transforms::Step step, const ImagesOptions& options)
    : Images(path, ImageSteps{std::move(step)}, options) {}

ImageFolder::ImageFolder(const fs::path& root, ImageSteps steps, const ImagesOptions& options)
    : Images(open_folder(root, options), std::move(steps), options) {}

ImageFolder::ImageFolder(const fs::path& root, feed::transforms::Step step,
                         const ImagesOptions& options)
    : ImageFolder(root, ImageSteps{std::move(step)}, options) {}

SampleLayout Images::layout() const {
  const feed::Transforms& transforms = rows_->transforms();
  return {.input_sizes = {3, transforms.height(), transforms.width()},
          .input_dtype = at::kByte,
          .channels_last = true};
}

void Images::fill(const Request& request, const Rows& rows) const {
  const std::size_t bytes = rows_->transforms().bytes();
  auto* pixels = static_cast<std::byte*>(rows.input.mutable_data_ptr());
  auto* labels = rows.target.mutable_data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < request.indices.size(); ++i) {
    const feed::RowResult result =
        rows_->fill({.seed = request.seed, .epoch = request.epoch, .index = request.indices[i]},
                    {pixels + i * bytes, bytes});
    labels[i] = result.label;
    rows.good[i] = result.good ? 1 : 0;
  }
}

at::Tensor Images::finished(const at::Tensor& input) const {
  if (!normalize_) return input;
  constexpr float kWhite = 255;
  const at::NoGradGuard no_grad;
  at::Tensor values = input.to(at::kFloat);  // keeps channels last
  values.sub_(by_channel(normalize_->mean, kWhite, input));
  return values.div_(by_channel(normalize_->std, kWhite, input));
}

std::string Images::origin(std::int64_t index) const { return rows_->images().origin(index); }
std::uint64_t Images::fingerprint() const { return rows_->images().fingerprint(); }
std::vector<feed::BadSample> Images::bad_samples() const { return rows_->quarantine(); }

std::vector<StageTime> Images::stages() const {
  const feed::RowTimes times = rows_->times();
  return {{"read", times.read}, {"decode and transform", times.transform}};
}

const std::vector<std::string>& Images::classes() const { return rows_->images().class_names(); }

}  // namespace yoke::data
