#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "yoke/core/files.hpp"

namespace yoke::stack {

/// A folder of its own that ends with the test.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "yoke-stack-XXXXXX").string();
    folder_ = std::filesystem::canonical(::mkdtemp(pattern.data()));
  }
  ~Scratch() { std::filesystem::remove_all(folder_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

  /// Writes a file below the folder, with the folders above it.
  std::filesystem::path write(const std::string& name, std::string_view bytes = {}) const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    core::write_atomically(path, bytes);
    return path;
  }

  void link(const std::string& name, const std::string& target) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::filesystem::create_symlink(target, folder_ / name);
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace yoke::stack
