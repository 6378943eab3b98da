#include "yoke/feed/image_folder.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "directory.hpp"
#include "file_reader.hpp"
#include "fingerprint.hpp"
#include "image_suffix.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

constexpr std::size_t kMostDepth = 32;  // a link to a folder above would have no end
constexpr std::size_t kMostNames = 10;  // of a list in a message

std::string some_of(std::vector<std::string> names) {
  const std::size_t left = names.size() - std::min(names.size(), kMostNames);
  names.resize(names.size() - left);
  return core::joined(names) + (left > 0 ? core::text(" and ", left, " more") : "");
}

// Takes out the folders that begin with a dot: .ipynb_checkpoints would become class 0 and shift
// all labels.
void leave_out_hidden(const std::filesystem::path& root, std::vector<std::string>& folders) {
  std::vector<std::string> hidden;
  std::erase_if(folders, [&](const std::string& name) {
    if (name.starts_with('.')) hidden.push_back(name);
    return name.starts_with('.');
  });
  if (hidden.empty()) return;
  core::say(
      core::Level::warning,
      core::text(root.string(), ": hidden folders are no classes: ", some_of(hidden), " left out"));
}

// All folders below `path`, itself included, sorted by the bytes of their paths, as Python sorts
// os.walk().
void walk(const std::string& path, std::size_t depth,
          std::vector<std::pair<std::string, Listing>>& found) {
  if (depth > kMostDepth) {
    throw Error(Code::invalid_argument,
                core::text("list ", path, ": more than ", kMostDepth, " folders deep"),
                "see whether a link points to a folder above it");
  }
  Listing listing = list_directory(path);
  const std::vector<std::string> folders = std::move(listing.folders);
  found.emplace_back(path, std::move(listing));
  for (const std::string& name : folders) walk(path + "/" + name, depth + 1, found);
}

}  // namespace

ImageFolder::ImageFolder(std::filesystem::path root, ImageFolderOptions options)
    : root_(std::move(root)) {
  std::vector<std::string> found = list_directory(root_).folders;
  leave_out_hidden(root_, found);
  if (found.empty()) {
    throw Error(Code::invalid_argument, core::text("no class folder in ", root_.string()),
                "put the images of each class into a folder of its own: ROOT/cat/1.jpg");
  }
  number_classes(found, options);
  list_classes(found, options);
}

void ImageFolder::number_classes(const std::vector<std::string>& found,
                                 const ImageFolderOptions& options) {
  const Classes classes = options.classes ? *options.classes : Classes(found);
  Classes::Match match = [&] {
    try {
      return classes.match(found);
    } catch (const Error& error) {
      throw error.within(root_.string());
    }
  }();
  class_names_ = classes.names();
  labels_ = std::move(match.labels);
  missing_ = std::move(match.missing);
  if (missing_.empty()) return;
  core::say(core::Level::warning, core::text(root_.string(), ": no folder for ", missing_.size(),
                                             missing_.size() == 1 ? " class" : " classes",
                                             " of training: ", some_of(missing_)));
}

void ImageFolder::list_classes(const std::vector<std::string>& found,
                               const ImageFolderOptions& options) {
  std::vector<std::string> empty;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::size_t before = files_.size();
    add_folder((root_ / found[i]).string(), labels_[i]);
    if (files_.size() == before) empty.push_back(found[i]);
  }
  if (empty.empty() || (options.allow_empty && !files_.empty())) return;
  throw Error(Code::invalid_argument, core::text(root_.string(), ": no image in ", some_of(empty)),
              core::text("images end with ", image_suffixes_text(),
                         "; remove the folders, or allow empty ones"));
}

void ImageFolder::add_folder(const std::string& path, std::int64_t label) {
  std::vector<std::pair<std::string, Listing>> found;
  walk(path, 0, found);
  std::ranges::sort(found, {},
                    [](const auto& folder) -> const std::string& { return folder.first; });
  for (auto& [folder, listing] : found) {
    const auto number = static_cast<std::uint32_t>(folders_.size());
    const std::size_t before = files_.size();
    for (const std::string& name : listing.files) {
      const std::string suffix = lower_suffix(name);
      if (is_foreign_image_suffix(suffix)) {
        throw Error(
            Code::unsupported,
            core::text("list ", folder, ": ", name, ": images of type .", suffix, " are not read"),
            core::text("convert them to one of ", image_suffixes_text(),
                       ", or take them out of the folder"));
      }
      if (!is_image_suffix(suffix)) continue;
      files_.push_back({names_.size(), static_cast<std::uint32_t>(name.size()), number});
      names_ += name;
    }
    if (files_.size() > before) folders_.push_back({folder, label});
  }
}

std::string_view ImageFolder::name_of(const File& file) const {
  return std::string_view(names_).substr(file.name, file.length);
}

std::int64_t ImageFolder::label(std::int64_t index) const {
  return folders_[files_[static_cast<std::size_t>(index)].folder].label;
}

std::string ImageFolder::origin(std::int64_t index) const {
  const File& file = files_[static_cast<std::size_t>(index)];
  std::string path = folders_[file.folder].path;
  path += '/';
  path += name_of(file);
  return path;
}

std::span<const std::byte> ImageFolder::read(std::int64_t index,
                                             std::vector<std::byte>& memory) const {
  return read_whole(origin(index), memory);
}

std::uint64_t ImageFolder::fingerprint() const {
  Fingerprint print;
  std::uint32_t folder = std::numeric_limits<std::uint32_t>::max();
  const std::size_t root_length = root_.string().size();
  for (const File& file : files_) {
    if (file.folder != folder) {
      print.add(std::string_view(folders_[file.folder].path).substr(root_length));
      print.add(static_cast<std::uint64_t>(folders_[file.folder].label));
    }
    folder = file.folder;
    print.add(name_of(file));
  }
  return print.value();
}

}  // namespace yoke::feed
