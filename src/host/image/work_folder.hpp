#pragma once

#include <filesystem>
#include <system_error>
#include <utility>

namespace yoke::image {

// A new folder that goes away with its owner.
class WorkFolder {
 public:
  explicit WorkFolder(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~WorkFolder() {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return folder_; }

 private:
  std::filesystem::path folder_;
};

}  // namespace yoke::image
