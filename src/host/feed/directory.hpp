#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace yoke::feed {

/// The names in a folder, sorted by their bytes, without "." and "..".
struct Listing {
  std::vector<std::string> folders;  ///< and links to folders
  std::vector<std::string> files;    ///< everything else
};

/// Errors: not_found and io, with the path.
[[nodiscard]] Listing list_directory(const std::filesystem::path& folder);

}  // namespace yoke::feed
