#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "yoke/feed/idx.hpp"
#include "yoke/feed/pixels.hpp"

namespace yoke::feed {

enum class Split { train, test };

[[nodiscard]] std::string_view name(Split split) noexcept;

/// Where Debian's package dataset-fashion-mnist puts its files; the one place on a fresh machine
/// that holds real images without a download site.
inline constexpr std::string_view kFashionMnistFolder = "/usr/share/datasets/fashion-mnist";
/// The name by which it is asked for, in place of a folder.
inline constexpr std::string_view kFashionMnist = "fashion-mnist";

/// Fashion-MNIST's own mean and deviation for its name or folder, else 0 and 1, which leaves pixels
/// in [0, 1].
[[nodiscard]] Normalise default_normalise(const std::filesystem::path& source);

/// Images and their labels from two IDX files that belong together.
///
/// Errors of both makers: those of open_idx; not_found with every name that was looked for;
///   invalid_argument for images that are not 8-bit, labels that are fractions or not one number
///   each, different counts (with both), and a label outside 0..num_classes-1 (with the sample's
///   index).
/// Threads: any (immutable).
class LabelledImages {
 public:
  /// num_classes 0: one more than the largest label.
  static LabelledImages open(const std::filesystem::path& images,
                             const std::filesystem::path& labels, std::int64_t num_classes = 0);

  /// MNIST's names in `folder` or its folder raw/: train-images-idx3-ubyte and
  /// train-labels-idx1-ubyte, or t10k-... for the test split; with "." for the second "-", and with
  /// .gz.
  static LabelledImages find(const std::filesystem::path& folder, Split split,
                             std::int64_t num_classes = 0);

  /// Whether `folder` has a file that find() would take for images of either split.
  [[nodiscard]] static bool is_there(const std::filesystem::path& folder);

  [[nodiscard]] std::int64_t size() const noexcept { return images_.items(); }
  [[nodiscard]] std::int64_t num_classes() const noexcept { return num_classes_; }
  /// [size, height, width] or [size, channels, height, width] u8.
  [[nodiscard]] const IdxFile& images() const noexcept { return images_; }
  [[nodiscard]] std::int64_t label(std::int64_t index) const { return labels_.integer(index); }

 private:
  LabelledImages(IdxFile images, IdxFile labels, std::int64_t num_classes);

  IdxFile images_;
  IdxFile labels_;
  std::int64_t num_classes_;
};

}  // namespace yoke::feed
