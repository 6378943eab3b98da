#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "yoke/data/dataset.hpp"
#include "yoke/feed/encoded_images.hpp"
#include "yoke/feed/image_rows.hpp"
#include "yoke/feed/transforms.hpp"

namespace yoke::data {

/// What is done to each image, by torchvision's names; one step or a list of them.
using ImageSteps = std::vector<feed::transforms::Step>;

struct ImagesOptions {
  std::vector<std::string> classes{};  ///< of training, by label, for its other splits
  bool allow_empty = false;            ///< class folders without images
  feed::Exif exif = feed::Exif::ignore;
  feed::BadSamples bad_samples = feed::BadSamples::raise;
  std::int64_t most_bad = 1000;  ///< different bad images on this rank; one more is an error
  std::function<void(const feed::BadSample&)> on_bad{};  ///< as feed::ImageRowsOptions has it
  bool raw = false;  ///< batches of bytes 0 to 255, not normalised
};

/// Image files with their classes: a folder of class folders, tar shards in WebDataset's layout, or
/// an LMDB, each decoded and transformed by the loader's threads into a batch of bytes, and
/// normalised on the loader's device.
///
///   namespace transforms = yoke::transforms;
///   Images train("imagenet/train", {transforms::RandomResizedCrop(224),
///                                   transforms::RandomHorizontalFlip()});
///   Images valid("imagenet/val", {transforms::Resize(256), transforms::CenterCrop(224)},
///                {.classes = train.classes()});
///
/// Shapes: batches [rows, 3, height, width] float32, or uint8 with `raw`, in channels-last memory;
///   target int64. Values: (byte / 255 - mean) / std with those of a Normalize at the end of the
///   steps, else ImageNet's.
/// A sample's pixels follow from (seed, epoch, index) alone.
/// Copies share the files. Threads: any.
/// Errors: those of feed::open_images() and feed::Transforms; invalid_argument for images without
///   labels. Of a sample: as `bad_samples` says.
class Images : public Dataset {
 public:
  Images(const std::filesystem::path& path, ImageSteps steps, const ImagesOptions& options = {});
  Images(const std::filesystem::path& path, feed::transforms::Step step,
         const ImagesOptions& options = {});
  Images(std::shared_ptr<const feed::EncodedImages> images, ImageSteps steps,
         const ImagesOptions& options = {});

  [[nodiscard]] std::int64_t size() const override { return rows_->images().size(); }
  [[nodiscard]] std::int64_t num_classes() const override { return num_classes_; }
  [[nodiscard]] SampleLayout layout() const override;
  void fill(const Request& request, const Rows& rows) const override;
  [[nodiscard]] at::Tensor finished(const at::Tensor& input) const override;
  [[nodiscard]] std::string origin(std::int64_t index) const override;
  [[nodiscard]] std::uint64_t fingerprint() const override;
  [[nodiscard]] std::vector<feed::BadSample> bad_samples() const override;
  [[nodiscard]] std::vector<StageTime> stages() const override;

  /// Their names by label; empty where the data have none.
  [[nodiscard]] const std::vector<std::string>& classes() const;

 private:
  std::shared_ptr<const feed::ImageRows> rows_;  // of this object and its copies
  std::int64_t num_classes_;
  std::optional<feed::transforms::Normalize> normalize_;  // nothing: batches stay bytes
};

/// Images in class folders, as torchvision's class of that name.
class ImageFolder final : public Images {
 public:
  ImageFolder(const std::filesystem::path& root, ImageSteps steps,
              const ImagesOptions& options = {});
  ImageFolder(const std::filesystem::path& root, feed::transforms::Step step,
              const ImagesOptions& options = {});
};

}  // namespace yoke::data
