#include "yoke/core/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::core {
namespace {

namespace fs = std::filesystem;

std::string reason(int system_error) { return std::generic_category().message(system_error); }

fs::path temporary_name(const fs::path& path) {
  static std::atomic<unsigned> counter{0};
  return path.parent_path() /
         text(".", path.filename().string(), ".", ::getpid(), ".", counter++, ".part");
}

void sync_folder(const fs::path& folder) {
  const int descriptor =
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);  // best effort: some file systems refuse it for folders
  ::close(descriptor);
}

}  // namespace

std::string read_file(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    const int error = errno;
    throw Error(error == ENOENT ? Code::not_found : Code::io,
                text("read ", path.string(), ": ", reason(error)));
  }
  std::string bytes;
  struct stat info{};
  if (::fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode))
    bytes.reserve(static_cast<std::size_t>(info.st_size));
  std::string block(1 << 16, '\0');
  while (true) {
    const ssize_t n = ::read(descriptor, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      ::close(descriptor);
      throw Error(Code::io, text("read ", path.string(), ": ", reason(error)));
    }
    if (n == 0) break;
    bytes.append(block.data(), static_cast<std::size_t>(n));
  }
  ::close(descriptor);
  return bytes;
}

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)), temporary_(temporary_name(path_)) {
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("create", errno);
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
  descriptor_ = -1;
}

void AtomicFile::fail(const char* doing, int system_error) {
  discard();
  const std::string hint = system_error == ENOSPC || system_error == EDQUOT
                               ? "free space there, or choose another folder"
                               : "check that the folder exists and may be written";
  throw Error(
      Code::io,
      text(doing, " ", path_.string(), " (after ", bytes_text(size_), "): ", reason(system_error)),
      hint);
}

void AtomicFile::write(std::string_view bytes) { write(bytes.data(), bytes.size()); }

void AtomicFile::write(const void* bytes, std::size_t count) {
  if (descriptor_ < 0)
    throw Error(Code::internal, text("write ", path_.string(), ": the file was closed before"));
  const char* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t n = ::write(descriptor_, from, count);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write", errno);
    from += n;
    count -= static_cast<std::size_t>(n);
    size_ += static_cast<std::uint64_t>(n);
  }
}

void AtomicFile::commit() {
  if (descriptor_ < 0)
    throw Error(Code::internal, text("commit ", path_.string(), ": the file was closed before"));
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS) fail("flush", errno);
  if (::close(std::exchange(descriptor_, -1)) != 0) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    fail("close", error);
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    fail("rename into place", error);
  }
  sync_folder(path_.parent_path());
}

void write_atomically(const fs::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void make_private_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw Error(Code::io, text("create folder ", folder.string(), ": ", reason(errno)));
  struct stat info{};
  if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid())
    throw Error(Code::io, text(folder.string(), " is not a folder of this user"));
}

fs::path cache_folder() {
  fs::path folder;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg == '/') {
    folder = fs::path(xdg) / "yoke";
  } else if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    folder = fs::path(home) / ".cache" / "yoke";
  } else {
    folder = text("/tmp/yoke-cache-", ::getuid());
    make_private_folder(folder);
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw Error(Code::io, text("create cache folder ", folder.string(), ": ", error.message()),
                "set XDG_CACHE_HOME to a folder that may be written");
  }
  return folder;
}

void make_writable_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw Error(Code::io, text("create folder ", folder.string(), ": ", error.message()),
                "choose another folder, or make its parent writable");
  }
  AtomicFile probe(folder / "probe");
  probe.write("x");
}

}  // namespace yoke::core
