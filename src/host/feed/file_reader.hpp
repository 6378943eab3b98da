#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace yoke::feed {

/// A file opened for reading; not mapped, so that one that shrinks meanwhile gives an error and no
/// SIGBUS.
///
/// Threads: any (reads name their place).
/// Errors: not_found and io, with the path.
class FileReader {
 public:
  explicit FileReader(std::filesystem::path path);
  ~FileReader();
  FileReader(FileReader&& other) noexcept;
  FileReader& operator=(FileReader&&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::int64_t changed() const noexcept { return changed_; }  ///< ns since 1970

  /// Fills `out` from `offset` on; returns how much came, less than asked for only at the file's
  /// end.
  std::size_t read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::int64_t changed_ = 0;
};

/// The whole file, in `memory`. Errors: those of FileReader.
[[nodiscard]] std::span<const std::byte> read_whole(const std::filesystem::path& path,
                                                    std::vector<std::byte>& memory);

/// Raises this process's own limit of open files where `count` more would pass it.
/// Errors: io with both numbers where the system allows fewer.
void allow_open_files(std::size_t count);

}  // namespace yoke::feed
