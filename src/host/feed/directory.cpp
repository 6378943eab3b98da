#include "directory.hpp"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <system_error>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

[[noreturn]] void fail(const std::filesystem::path& folder, int system_error) {
  throw Error(
      system_error == ENOENT ? Code::not_found : Code::io,
      core::text("list ", folder.string(), ": ", std::generic_category().message(system_error)));
}

bool is_folder(const dirent& entry, const std::filesystem::path& folder) {
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat info{};
  return ::stat((folder / entry.d_name).c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

Listing list_directory(const std::filesystem::path& folder) {
  struct Close {
    void operator()(DIR* directory) const noexcept { ::closedir(directory); }
  };
  const std::unique_ptr<DIR, Close> directory(::opendir(folder.c_str()));
  if (!directory) fail(folder, errno);
  Listing listing;
  errno = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    (is_folder(*entry, folder) ? listing.folders : listing.files).emplace_back(name);
    errno = 0;
  }
  if (errno != 0) fail(folder, errno);
  std::ranges::sort(listing.folders);
  std::ranges::sort(listing.files);
  return listing;
}

}  // namespace yoke::feed
