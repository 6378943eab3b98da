#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace yoke::train {

// A file that grows by whole records: what a reader finds in it ends with the last one that was
// written in full.
//
// Errors: io with the path and the system's reason; a record that did not fit is taken back.
// Threads: one at a time.
class AppendFile {
 public:
  // What becomes of an older file of the name: emptied, or kept up to the end of its last line.
  enum class Old { emptied, kept };

  explicit AppendFile(std::filesystem::path path, Old old = Old::emptied);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  void append(std::string_view record);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  void keep_whole_lines();
  [[noreturn]] void fail(const char* doing, int system_error) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace yoke::train
