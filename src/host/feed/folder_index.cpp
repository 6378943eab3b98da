#include "folder_index.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "directory.hpp"
#include "image_suffix.hpp"
#include "index_cache.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMark = 0x31584449444C4F46U;  // changes with the layout
constexpr std::string_view kVariant = "image folder";
constexpr std::size_t kMostDepth = 32;  // a link to a folder above would have no end

struct Look {
  std::int64_t changed = 0;
  std::uint64_t inode = 0;
};

std::optional<Look> look_at(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return Look{std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec,
              info.st_ino};
}

class Indexer {
 public:
  explicit Indexer(const fs::path& root) : root_(root.string()) {}

  FolderIndex make() {
    index_.class_folders = enter("").folders;
    std::erase_if(index_.class_folders, [&](const std::string& name) {
      if (name.starts_with('.')) index_.hidden.push_back(name);
      return name.starts_with('.');
    });
    for (std::uint32_t number = 0; number < index_.class_folders.size(); ++number)
      add_class(number);
    return std::move(index_);
  }

 private:
  struct Found {
    std::uint32_t walked;
    std::vector<std::string> files;
  };

  // The look comes first: what is added while the names are read changes the time again.
  Listing enter(const std::string& path) {
    const std::string whole = path.empty() ? root_ : root_ + "/" + path;
    const auto look = look_at(whole);
    Listing listing = list_directory(whole);
    index_.walked.push_back({path, look ? look->changed : 0, look ? look->inode : 0});
    return listing;
  }

  void walk(const std::string& path, std::size_t depth, std::vector<Found>& found) {
    if (depth > kMostDepth) {
      throw Error(
          Code::invalid_argument,
          core::text("list ", root_, "/", path, ": more than ", kMostDepth, " folders deep"),
          "see whether a link points to a folder above it");
    }
    Listing listing = enter(path);
    found.push_back(
        {static_cast<std::uint32_t>(index_.walked.size() - 1), std::move(listing.files)});
    for (const std::string& name : listing.folders) walk(path + "/" + name, depth + 1, found);
  }

  // Folders by the bytes of their paths, as Python sorts os.walk().
  void add_class(std::uint32_t number) {
    std::vector<Found> found;
    walk(index_.class_folders[number], 0, found);
    std::ranges::sort(found, {}, [&](const Found& folder) -> const std::string& {
      return index_.walked[folder.walked].path;
    });
    for (const Found& folder : found) {
      const std::size_t before = index_.files.size();
      for (const std::string& name : folder.files) add_file(name, folder.walked);
      if (index_.files.size() > before) index_.folders.push_back({folder.walked, number});
    }
  }

  void add_file(const std::string& name, std::uint32_t walked) {
    const std::string suffix = lower_suffix(name);
    if (is_foreign_image_suffix(suffix)) {
      throw Error(Code::unsupported,
                  core::text("list ", root_, "/", index_.walked[walked].path, ": ", name,
                             ": images of type .", suffix, " are not read"),
                  core::text("convert them to one of ", image_suffixes_text(),
                             ", or take them out of the folder"));
    }
    if (!is_image_suffix(suffix)) return;
    index_.files.push_back({index_.names.size(), static_cast<std::uint32_t>(name.size()),
                            static_cast<std::uint32_t>(index_.folders.size())});
    index_.names += name;
  }

  std::string root_;
  FolderIndex index_;
};

bool is_unchanged(const FolderIndex& index, const std::string& root) {
  return std::ranges::all_of(index.walked, [&](const FolderIndex::Walked& folder) {
    const auto look = look_at(folder.path.empty() ? root : root + "/" + folder.path);
    return look && look->changed == folder.changed && look->inode == folder.inode;
  });
}

// A folder that changed a moment ago may change again within one tick of its clock.
bool is_settled(const FolderIndex& index) {
  constexpr std::int64_t kMoment = 2'000'000'000;  // ns
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  return std::ranges::all_of(index.walked, [&](const FolderIndex::Walked& folder) {
    return folder.changed < now - kMoment;
  });
}

void put(IndexWriter& out, const std::vector<std::string>& names) {
  out.put(std::uint64_t{names.size()});
  for (const std::string& name : names) out.put_list(name);
}

bool get(IndexReader& in, std::vector<std::string>& names) {
  std::uint64_t count = 0;
  if (!in.get(count)) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string name;
    if (!in.get_list(name)) return false;
    names.push_back(std::move(name));
  }
  return true;
}

bool get(IndexReader& in, std::vector<FolderIndex::Walked>& walked) {
  std::uint64_t count = 0;
  if (!in.get(count)) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    FolderIndex::Walked folder;
    if (!in.get_list(folder.path) || !in.get(folder.changed) || !in.get(folder.inode)) return false;
    walked.push_back(std::move(folder));
  }
  return true;
}

// Everything points to something that is there, and no walked path leads out of the root.
bool is_whole(const FolderIndex& index) {
  const bool files = std::ranges::all_of(index.files, [&](const FolderIndex::File& file) {
    return file.folder < index.folders.size() && file.name <= index.names.size() &&
           file.length <= index.names.size() - file.name;
  });
  return files && std::ranges::all_of(index.folders, [&](const FolderIndex::Folder& folder) {
           return folder.path < index.walked.size() &&
                  folder.class_folder < index.class_folders.size();
         });
}

}  // namespace

FolderIndex index_folder(const fs::path& root) { return Indexer(root).make(); }

std::string to_bytes(const FolderIndex& index) {
  IndexWriter out;
  out.put(kMark);
  put(out, index.class_folders);
  put(out, index.hidden);
  out.put(std::uint64_t{index.walked.size()});
  for (const FolderIndex::Walked& folder : index.walked) {
    out.put_list(folder.path);
    out.put(folder.changed);
    out.put(folder.inode);
  }
  out.put_list(index.folders);
  out.put_list(index.files);
  out.put_list(index.names);
  return out.finish();
}

std::optional<FolderIndex> folder_index_from(std::string_view bytes) {
  IndexReader in(bytes);
  std::uint64_t mark = 0;
  FolderIndex index;
  const bool is_read = in.get(mark) && mark == kMark && get(in, index.class_folders) &&
                       get(in, index.hidden) && get(in, index.walked) &&
                       in.get_list(index.folders) && in.get_list(index.files) &&
                       in.get_list(index.names) && in.at_end();
  if (!is_read || !is_whole(index)) return std::nullopt;
  return index;
}

FolderIndex cached_folder_index(const fs::path& root) {
  if (const auto bytes = load_index(root, kVariant)) {
    auto index = folder_index_from(*bytes);
    if (index && is_unchanged(*index, root.string())) return std::move(*index);
  }
  FolderIndex index = index_folder(root);
  if (is_settled(index)) keep_index(root, kVariant, to_bytes(index));
  return index;
}

}  // namespace yoke::feed
