#pragma once

#include <filesystem>
#include <string>

namespace yoke::launch {

// A folder of one job, with a folder for each rank's error file in it; removed at the end.
class ScratchFolder {
 public:
  // Errors: io.
  ScratchFolder(const std::string& parent, int ranks);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  void remove() noexcept;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace yoke::launch
