#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace yoke::core {

/// The whole file. Errors: not_found, io, both with the path.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

/// A file that appears under its name whole or not at all: written beside it under a name of this
/// process, flushed to disk, then renamed into place.
///
///   AtomicFile file("runs/a/result.json");
///   file.write(bytes);
///   file.commit();
///
/// Errors: io with the path, the size asked for and the system's reason ("no space left on
/// device"), or corrupted
///   permissions; an older file of the name stays untouched, and nothing is left beside it.
/// Threads: one at a time.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();  ///< without commit(): removes what was written
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  void write(const void* bytes, std::size_t count);
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// Flushes to disk and renames into place.
  void commit();

 private:
  [[noreturn]] void fail(const char* doing, int system_error);
  void discard() noexcept;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// AtomicFile in one call.
void write_atomically(const std::filesystem::path& path, std::string_view bytes);

/// Yoke's folder for what can be made again: $XDG_CACHE_HOME/yoke, else $HOME/.cache/yoke, else
/// /tmp/yoke-cache-<uid>. Created if missing. Errors: io.
[[nodiscard]] std::filesystem::path cache_folder();

/// Makes the folder, mode 0700, whose parent is there. What another user made under the name is
/// refused: it could be exchanged under us. Errors: io.
void make_private_folder(const std::filesystem::path& folder);

/// Creates the folder and its parents and proves that a file can be written in it.
/// Errors: io, naming the folder and the reason.
void make_writable_folder(const std::filesystem::path& folder);

}  // namespace yoke::core
