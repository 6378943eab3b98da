#include "file_reader.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

[[noreturn]] void fail(const char* doing, const std::filesystem::path& path, int system_error) {
  throw Error(
      system_error == ENOENT ? Code::not_found : Code::io,
      core::text(doing, " ", path.string(), ": ", std::generic_category().message(system_error)));
}

}  // namespace

FileReader::FileReader(std::filesystem::path path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) fail("open", path_, errno);
  struct stat info{};
  if (::fstat(descriptor_, &info) != 0 || S_ISDIR(info.st_mode)) {
    const int reason = S_ISDIR(info.st_mode) ? EISDIR : errno;
    ::close(descriptor_);
    fail("open", path_, reason);
  }
  size_ = static_cast<std::uint64_t>(info.st_size);
  changed_ = std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

FileReader::~FileReader() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

FileReader::FileReader(FileReader&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      changed_(other.changed_) {}

std::size_t FileReader::read(std::uint64_t offset, std::span<std::byte> out) const {
  std::size_t filled = 0;
  while (filled < out.size()) {
    const ssize_t count = ::pread(descriptor_, out.data() + filled, out.size() - filled,
                                  static_cast<off_t>(offset + filled));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("read", path_, errno);
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  return filled;
}

std::span<const std::byte> read_whole(const std::filesystem::path& path,
                                      std::vector<std::byte>& memory) {
  const FileReader file(path);
  memory.resize(file.size());
  const std::size_t count = file.read(0, memory);
  return std::span<const std::byte>(memory).first(count);
}

void allow_open_files(std::size_t count) {
  constexpr rlim_t kOthers = 256;  // of the rest of the process
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t wanted = count + kOthers;
  if (limit.rlim_cur >= wanted) return;
  if (limit.rlim_max < wanted) {
    throw Error(
        Code::io,
        core::text("open ", count, " files: this process may have ", limit.rlim_max, " open"),
        "write fewer and larger shards, or raise the limit (ulimit -Hn)");
  }
  limit.rlim_cur = wanted;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace yoke::feed
