#include "mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "yoke/core/descriptor.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::archive {
namespace {

[[noreturn]] void fail(const char* doing, const std::filesystem::path& path, int system_error) {
  throw Error(
      system_error == ENOENT ? Code::not_found : Code::io,
      core::text(doing, " ", path.string(), ": ", std::generic_category().message(system_error)));
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const core::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) fail("open", path, errno);
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) fail("look at", path, errno);
  if (S_ISDIR(info.st_mode)) fail("read", path, EISDIR);
  if (!S_ISREG(info.st_mode)) {
    throw Error(Code::io,
                core::text("read ", path.string(), ": not a regular file, so it cannot be mapped"));
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile({}));
  void* start =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.get(), 0);
  if (start == MAP_FAILED) fail("map", path, errno);
  return std::shared_ptr<const MappedFile>(new MappedFile({static_cast<std::byte*>(start), size}));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace yoke::archive
