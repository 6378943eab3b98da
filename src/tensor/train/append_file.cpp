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

AppendFile::AppendFile(std::filesystem::path path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("create", errno);
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
