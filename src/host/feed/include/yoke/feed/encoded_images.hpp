#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace yoke::feed {

/// Images as they lie in files, by number, with their labels: folders, tar shards, LMDB.
///
/// Threads: any.
/// Errors of read(): not_found, io and corrupt_data, with origin(index).
class EncodedImages {
 public:
  EncodedImages() = default;
  EncodedImages(const EncodedImages&) = delete;
  EncodedImages& operator=(const EncodedImages&) = delete;
  virtual ~EncodedImages() = default;

  [[nodiscard]] virtual std::int64_t size() const = 0;

  /// 0 where the images have no labels.
  [[nodiscard]] virtual std::int64_t num_classes() const = 0;

  /// -1 for an image without one. Requires: 0 <= index < size(), here and below.
  [[nodiscard]] virtual std::int64_t label(std::int64_t index) const = 0;

  /// The image's file: in `memory`, which grows as needed, or where the source keeps it.
  [[nodiscard]] virtual std::span<const std::byte> read(std::int64_t index,
                                                        std::vector<std::byte>& memory) const = 0;

  /// Where it comes from, for messages: a path, with the member or key inside.
  [[nodiscard]] virtual std::string origin(std::int64_t index) const = 0;

  /// What this is, in words: "image folder", "tar shards", "LMDB".
  [[nodiscard]] virtual std::string kind() const = 0;

  /// Over names, sizes and labels: differs, with all likelihood, where the images do.
  [[nodiscard]] virtual std::uint64_t fingerprint() const = 0;

  /// By label; empty where labels have no names.
  [[nodiscard]] virtual const std::vector<std::string>& class_names() const = 0;
};

struct OpenOptions {
  std::vector<std::string> classes{};  ///< of training, by label, for its other splits; none: own
  bool allow_empty = false;            ///< class folders without images
};

/// What `path` holds: a folder of class folders; a .tar file or a folder of them; an LMDB folder or
/// file.
/// Errors: not_found with the path; invalid_argument for a path that is none of these, with what
///   was found, and for a class or label that training does not have.
[[nodiscard]] std::unique_ptr<EncodedImages> open_images(const std::filesystem::path& path,
                                                         const OpenOptions& options = {});

/// Whether open_images() has a way to read this path. Looks at names and first bytes alone.
[[nodiscard]] bool holds_images(const std::filesystem::path& path);

}  // namespace yoke::feed
