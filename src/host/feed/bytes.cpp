#include "bytes.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "yoke/core/descriptor.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, int system_error) {
  throw Error(
      system_error == ENOENT ? Code::not_found : Code::io,
      core::text("open ", path.string(), ": ", std::generic_category().message(system_error)));
}

}  // namespace

Bytes Bytes::map(const std::filesystem::path& path) {
  const core::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) fail(path, errno);
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) fail(path, errno);
  if (!S_ISREG(info.st_mode)) {
    throw Error(Code::invalid_argument,
                core::text("open ", path.string(), ": ",
                           S_ISDIR(info.st_mode) ? "it is a folder" : "it is not a regular file"));
  }
  Bytes bytes;
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return bytes;
  void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapping == MAP_FAILED) fail(path, errno);
  bytes.mapping_ = mapping;
  bytes.view_ = {static_cast<const std::byte*>(mapping), size};
  return bytes;
}

Bytes& Bytes::operator=(Bytes&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  own_ = std::move(other.own_);  // keeps its address, and with it the view
  view_ = std::exchange(other.view_, {});
  mapping_ = std::exchange(other.mapping_, nullptr);
  return *this;
}

void Bytes::unmap() noexcept {
  if (mapping_ != nullptr) ::munmap(mapping_, view_.size());
  mapping_ = nullptr;
}

}  // namespace yoke::feed
