#include <array>
#include <cstring>
#include <utility>

#include "directory.hpp"
#include "file_reader.hpp"
#include "image_suffix.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/feed/encoded_images.hpp"
#include "yoke/feed/image_folder.hpp"
#include "yoke/feed/lmdb_images.hpp"
#include "yoke/feed/tar_shards.hpp"

namespace yoke::feed {
namespace {

namespace fs = std::filesystem;

// LMDB's two first pages begin with their number and flags; the mark stands behind that.
bool is_lmdb(const fs::path& path) {
  constexpr std::array<unsigned char, 4> kMark{0xDE, 0xC0, 0xEF, 0xBE};
  std::array<std::byte, 20> start{};
  if (FileReader(path).read(0, start) < start.size()) return false;
  return std::memcmp(start.data() + 16, kMark.data(), kMark.size()) == 0;
}

bool holds_tar(const Listing& listing) {
  for (const std::string& name : listing.files) {
    if (lower_suffix(name) == "tar") return true;
  }
  return false;
}

[[noreturn]] void refuse(const fs::path& path, const std::string& found) {
  throw Error(Code::invalid_argument, core::text("open images in ", path.string(), ": ", found),
              "give a folder of class folders, a .tar file or a folder of them, or an LMDB");
}

std::unique_ptr<EncodedImages> open_folder(const fs::path& path, const OpenOptions& options) {
  const Listing listing = list_directory(path);
  std::error_code none;
  if (fs::exists(path / "data.mdb", none)) return std::make_unique<LmdbImages>(path);
  if (!listing.folders.empty()) {
    ImageFolderOptions folder{.allow_empty = options.allow_empty};
    if (!options.classes.empty()) folder.classes.emplace(options.classes);
    return std::make_unique<ImageFolder>(path, std::move(folder));
  }
  if (holds_tar(listing)) return std::make_unique<TarShards>(TarShards::find(path));
  if (fs::exists(path / "lock.mdb", none)) {
    throw Error(Code::not_found, core::text("open LMDB ", path.string(), ": no data.mdb in it"));
  }
  refuse(path, listing.files.empty() ? "the folder is empty"
                                     : core::text("no class folder, no .tar file and no data.mdb "
                                                  "beside ",
                                                  listing.files.size(), " other files"));
}

std::unique_ptr<EncodedImages> open_any(const fs::path& path, const OpenOptions& options) {
  std::error_code none;
  if (fs::is_directory(path, none)) return open_folder(path, options);
  if (lower_suffix(path.string()) == "tar") {
    return std::make_unique<TarShards>(std::vector<fs::path>{path});
  }
  if (is_lmdb(path)) return std::make_unique<LmdbImages>(path);
  refuse(path, "the file is neither a tar archive by its name nor an LMDB by its first bytes");
}

// Of shards and LMDBs, whose labels are numbers already.
void require_labels_of_training(const fs::path& path, const EncodedImages& images,
                                const OpenOptions& options) {
  const auto classes = static_cast<std::int64_t>(options.classes.size());
  if (classes == 0 || images.num_classes() <= classes) return;
  throw Error(Code::invalid_argument,
              core::text("open ", path.string(), ": labels up to ", images.num_classes() - 1,
                         ", but training has ", classes, " classes (0 to ", classes - 1, ")"),
              "give both parts the same numbers");
}

}  // namespace

std::unique_ptr<EncodedImages> open_images(const fs::path& path, const OpenOptions& options) {
  auto images = open_any(path, options);
  require_labels_of_training(path, *images, options);
  return images;
}

bool holds_images(const fs::path& path) {
  std::error_code none;
  if (!fs::is_directory(path, none)) {
    const bool is_file = fs::is_regular_file(path, none);
    return is_file && (lower_suffix(path.string()) == "tar" || is_lmdb(path));
  }
  const Listing listing = list_directory(path);
  return !listing.folders.empty() || holds_tar(listing) || fs::exists(path / "data.mdb", none);
}

}  // namespace yoke::feed
