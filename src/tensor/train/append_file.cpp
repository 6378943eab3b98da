#include "append_file.hpp"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::train {

using core::text;

AppendFile::AppendFile(std::filesystem::path path, Old old) : path_(std::move(path)) {
  const int truncated = old == Old::emptied ? O_TRUNC : 0;
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | truncated, 0666);
  if (descriptor_ < 0) fail("create", errno);
  if (old == Old::kept) keep_whole_lines();
}

void AppendFile::keep_whole_lines() {
  off_t end = ::lseek(descriptor_, 0, SEEK_END);
  for (char last = 0; end > 0; --end) {
    if (::pread(descriptor_, &last, 1, end - 1) != 1) fail("read", errno);
    if (last == '\n') break;
  }
  if (end < 0 || ::ftruncate(descriptor_, end) != 0 || ::lseek(descriptor_, end, SEEK_SET) < 0)
    fail("shorten", errno);
  size_ = static_cast<std::uint64_t>(end);
}

AppendFile::~AppendFile() { ::close(descriptor_); }

void AppendFile::append(std::string_view record) {
  std::size_t written = 0;
  while (written < record.size()) {
    const ssize_t n = ::write(descriptor_, record.data() + written, record.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = n < 0 ? errno : ENOSPC;
      // Best effort: where even this fails, readers see a last record without its end and can tell.
      [[maybe_unused]] const int ignored = ::ftruncate(descriptor_, static_cast<off_t>(size_));
      fail("write", error);
    }
    written += static_cast<std::size_t>(n);
  }
  size_ += record.size();
}

void AppendFile::fail(const char* doing, int system_error) const {
  throw Error(Code::io,
              text(doing, ' ', path_.string(), ": ", std::generic_category().message(system_error)),
              system_error == ENOSPC ? "free some space, or choose another folder by --out" : "");
}

}  // namespace yoke::train
