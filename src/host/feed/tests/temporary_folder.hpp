#pragma once

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace yoke::feed {

/// A folder that is gone again at the end of the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "yoke-feed-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code none;
    std::filesystem::remove_all(path_, none);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

/// Sends core::cache_folder() elsewhere for the life of this object.
class CacheElsewhere {
 public:
  explicit CacheElsewhere(const std::filesystem::path& folder) {
    const char* before = std::getenv("XDG_CACHE_HOME");
    had_one_ = before != nullptr;
    if (had_one_) before_ = before;
    ::setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  }
  ~CacheElsewhere() {
    if (had_one_) {
      ::setenv("XDG_CACHE_HOME", before_.c_str(), 1);
    } else {
      ::unsetenv("XDG_CACHE_HOME");
    }
  }
  CacheElsewhere(const CacheElsewhere&) = delete;
  CacheElsewhere& operator=(const CacheElsewhere&) = delete;

 private:
  bool had_one_;
  std::string before_;
};

}  // namespace yoke::feed
