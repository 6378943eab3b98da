#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace yoke::archive {

/// A whole file as memory. Private to this process: what somebody writes into the pages does not
/// reach the file.
///
/// A file that another program cuts short in place while it is mapped ends the reader by SIGBUS;
/// one that is replaced by renaming, as AtomicFile does, stays whole here.
class MappedFile {
 public:
  /// Errors: not_found, io, with the path; an empty file is no error.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  explicit MappedFile(std::span<std::byte> bytes) : bytes_(bytes) {}

  std::span<std::byte> bytes_;
};

}  // namespace yoke::archive
