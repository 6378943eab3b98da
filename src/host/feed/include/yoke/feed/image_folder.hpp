#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "yoke/feed/classes.hpp"
#include "yoke/feed/encoded_images.hpp"

namespace yoke::feed {

struct ImageFolderOptions {
  bool allow_empty = false;          ///< class folders without images; torchvision's word
  std::optional<Classes> classes{};  ///< of training, for its other splits
  bool cache = true;  ///< keep the names in core::cache_folder() for the next process
};

/// Images in class folders, root/cat/123.jpg, in torchvision's order: classes by the bytes of their
/// names, and in each the files by the bytes of their folder's path, then of their names.
///
///   const ImageFolder train("imagenet/train");
///   const ImageFolder valid("imagenet/val", {.classes = Classes(train.class_names())});
///
/// Files count by suffix, whatever its case: jpg, jpeg, png, and webp where Yoke reads it. Folders
/// whose names begin with a dot are left out with one warning, other files with none. Links are
/// followed.
///
/// Errors of the constructor: not_found and io with the path; invalid_argument where there is no
///   class folder, for class folders without images (all by name), and for a class that training
///   does not have; unsupported for images that torchvision reads and Yoke does not (bmp, ppm, pgm,
///   tif), which would otherwise be missing in silence.
/// Cost: one pass over the names, once per machine: kept names are taken again as long as no
///   folder has changed, which costs one look at each folder. About the length of a name and 16
///   bytes an image.
class ImageFolder final : public EncodedImages {
 public:
  explicit ImageFolder(const std::filesystem::path& root, const ImageFolderOptions& options = {});
  ~ImageFolder() override;

  [[nodiscard]] std::int64_t size() const override;
  [[nodiscard]] std::int64_t num_classes() const override;
  [[nodiscard]] std::int64_t label(std::int64_t index) const override;
  [[nodiscard]] std::span<const std::byte> read(std::int64_t index,
                                                std::vector<std::byte>& memory) const override;
  [[nodiscard]] std::string origin(std::int64_t index) const override;
  [[nodiscard]] std::string kind() const override { return "image folder"; }
  [[nodiscard]] std::uint64_t fingerprint() const override;
  [[nodiscard]] const std::vector<std::string>& class_names() const override;

  /// Classes of training that have no folder here.
  [[nodiscard]] const std::vector<std::string>& missing_classes() const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace yoke::feed
