#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace yoke::settings {

/// A folder of its own for one test.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "yoke-settings-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// Writes a file and returns its name.
  std::string write(const std::string& name, const std::string& words) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << words;
    return file.string();
  }

 private:
  std::filesystem::path path_;
};

}  // namespace yoke::settings
