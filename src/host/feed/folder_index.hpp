#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::feed {

/// The names below a folder of class folders, as compact as they can be looked up.
struct FolderIndex {
  struct File {
    std::uint64_t name = 0;    ///< where in `names` it begins
    std::uint32_t length = 0;  ///< of it
    std::uint32_t folder = 0;  ///< in `folders`
  };
  struct Folder {            ///< that holds images itself
    std::uint32_t path = 0;  ///< in `walked`
    std::uint32_t class_folder = 0;
  };
  struct Walked {
    std::string path;          ///< below the root, without it; empty: the root
    std::int64_t changed = 0;  ///< its time of change, ns
    std::uint64_t inode = 0;
  };

  std::vector<std::string> class_folders;  ///< in the root, by the bytes of their names
  std::vector<std::string> hidden;         ///< left out
  std::vector<Walked> walked;              ///< every folder that was looked into
  std::vector<Folder> folders;
  std::vector<File> files;
  std::string names;
};

/// Looks into every folder. Errors: those of ImageFolder's constructor about single folders.
[[nodiscard]] FolderIndex index_folder(const std::filesystem::path& root);

/// The index as bytes, and back: nothing where they are damaged or of another version.
[[nodiscard]] std::string to_bytes(const FolderIndex& index);
[[nodiscard]] std::optional<FolderIndex> folder_index_from(std::string_view bytes);

/// From the cache, where no folder has changed since; else made anew and put there.
[[nodiscard]] FolderIndex cached_folder_index(const std::filesystem::path& root);

}  // namespace yoke::feed
