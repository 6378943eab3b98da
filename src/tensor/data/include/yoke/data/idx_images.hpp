#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "yoke/data/dataset.hpp"
#include "yoke/feed/labelled_images.hpp"
#include "yoke/feed/pixels.hpp"

namespace yoke::data {

using feed::Split;

struct IdxImagesOptions {
  std::optional<feed::Normalise> normalise{};  ///< feed::default_normalise() of the source
  std::int64_t num_classes = 0;                ///< 0: one more than the largest label
};

/// Images and labels in MNIST's file format.
///
///   IdxImages train("fashion-mnist", Split::train);
///   IdxImages test("data/mnist", Split::test, {.normalise = {{.mean = 0.1307F, .std = 0.3081F}}});
///
/// Shapes: input [channels, height, width] float32, (pixel / 255 - mean) / std; target int64.
/// Copies share the files' memory. Threads: any.
/// Errors: those of feed::LabelledImages.
/// Cost: opening maps the files (the first time it unpacks .gz into a cache); one pass over the
///   pixels of each batch.
class IdxImages final : public Dataset {
 public:
  /// `source`: "fashion-mnist", where Debian's package put it, or a folder of IDX files.
  explicit IdxImages(const std::filesystem::path& source, Split split = Split::train,
                     const IdxImagesOptions& options = {});

  [[nodiscard]] std::int64_t size() const override { return files_->size(); }
  [[nodiscard]] std::int64_t num_classes() const override { return files_->num_classes(); }
  [[nodiscard]] SampleLayout layout() const override;
  void fill(const Request& request, const Rows& rows) const override;
  [[nodiscard]] std::int64_t rows_at_once() const override { return 64; }
  [[nodiscard]] std::string origin(std::int64_t index) const override;
  [[nodiscard]] std::uint64_t fingerprint() const override;

 private:
  std::shared_ptr<const feed::LabelledImages> files_;  // of this object and its copies
  feed::Normalise normalise_;
};

}  // namespace yoke::data
