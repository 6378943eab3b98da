#include "scratch_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::launch {

ScratchFolder::ScratchFolder(const std::string& parent, int ranks) {
  std::string pattern = parent + "/yoke-job-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw Error(
        Code::io,
        core::text("create a folder in ", parent, ": ", std::generic_category().message(errno)),
        "set TMPDIR to a folder that may be written");
  }
  path_ = pattern;
  for (int rank = 0; rank < ranks; ++rank) {
    std::error_code ignored;  // a rank without a folder leaves no words, and that is all
    std::filesystem::create_directory(path_ / std::to_string(rank), ignored);
  }
}

ScratchFolder::~ScratchFolder() { remove(); }

void ScratchFolder::remove() noexcept {
  std::error_code ignored;  // a folder left in /tmp must not hide how the ranks ended
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace yoke::launch
