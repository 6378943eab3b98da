#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/core/json.hpp"

namespace yoke::archive {

/// A file of a sealed folder as it was when the folder was sealed.
struct SealedFile {
  std::string name{};  ///< relative to the folder, with '/' between folders
  std::uint64_t bytes = 0;
  std::string xxh3{};  ///< XXH3 of 128 bits over its bytes, 32 hexadecimal digits
};

/// What `manifest.json` of a sealed folder says.
struct Seal {
  core::Json about{};  ///< the writer's own facts
  std::vector<SealedFile> files{};
};

/// A folder that appears under its name whole or not at all: written beside it, hashed file by
/// file, flushed to disk, renamed into place.
///
///   UnsealedFolder next("runs/a/checkpoints/step-000100");
///   write_safetensors(next.path() / "model.safetensors", tensors);
///   next.seal({{"step", 100}});
///
/// Several processes may write files into path(); one of them makes and seals it.
/// Threads: one at a time. Errors: io, naming path and reason; invalid_argument where the target is
/// there.
class UnsealedFolder {
 public:
  explicit UnsealedFolder(std::filesystem::path target);
  ~UnsealedFolder();  ///< without seal(): removes what was written
  UnsealedFolder(const UnsealedFolder&) = delete;
  UnsealedFolder& operator=(const UnsealedFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  /// Cost: one pass over all bytes, which are in the page cache, and their way to the disk.
  void seal(const core::Json& about);

 private:
  std::filesystem::path target_;
  std::filesystem::path path_;
  bool sealed_ = false;
};

/// The seal, without a look at the files.
/// Errors: not_found where there is none; corrupt_data where it does not check itself.
[[nodiscard]] Seal read_seal(const std::filesystem::path& folder);

/// Whether the folder has a seal, sound or not.
[[nodiscard]] bool is_sealed(const std::filesystem::path& folder);

/// Removes the folder, its seal first, so that one that is half removed is not taken for a whole
/// one. What cannot be removed stays.
void remove_sealed(const std::filesystem::path& folder);

/// Reads everything back.
/// Errors: as read_seal(); corrupt_data naming the first file that is missing, of another size, or
/// whose bytes changed; io.
Seal verify(const std::filesystem::path& folder);

/// What lies in `root` and is no sealed folder, and why.
struct SkippedFolder {
  std::filesystem::path folder;
  std::string why;
};

struct SealedFolders {
  std::vector<std::filesystem::path> good;  ///< by name, falling: the newest first
  std::vector<SkippedFolder> skipped;       ///< the same way
};

/// The folders in `root` whose names begin with `prefix`, told apart by their seals and the sizes
/// of their files; hashes are verify()'s. None where `root` is not there.
[[nodiscard]] SealedFolders sealed_folders(const std::filesystem::path& root,
                                           std::string_view prefix);

/// Removes what writers that were killed have left in `root`. Requires: nobody writes there.
void remove_unsealed(const std::filesystem::path& root);

/// Errors: io where the disk of `folder` has less than `bytes` free.
void require_space(const std::filesystem::path& folder, std::uint64_t bytes);

}  // namespace yoke::archive
