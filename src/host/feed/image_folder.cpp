#include "yoke/feed/image_folder.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "file_reader.hpp"
#include "fingerprint.hpp"
#include "folder_index.hpp"
#include "image_suffix.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

constexpr std::size_t kMostNames = 10;  // of a list in a message

std::string some_of(std::vector<std::string> names) {
  const std::size_t left = names.size() - std::min(names.size(), kMostNames);
  names.resize(names.size() - left);
  return core::joined(names) + (left > 0 ? core::text(" and ", left, " more") : "");
}

// A path that ends with a slash would put two of them before each name.
std::filesystem::path without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

struct ImageFolder::State {
  State(const std::filesystem::path& folder, const ImageFolderOptions& options)
      : root(without_slash(folder.string())),
        index(options.cache ? cached_folder_index(root) : index_folder(root)) {
    // .ipynb_checkpoints would become class 0 and shift all labels.
    if (!index.hidden.empty()) {
      core::say(core::Level::warning, core::text(root.string(), ": hidden folders are no classes: ",
                                                 some_of(index.hidden), " left out"));
    }
    if (index.class_folders.empty()) {
      throw Error(Code::invalid_argument, core::text("no class folder in ", root.string()),
                  "put the images of each class into a folder of its own: ROOT/cat/1.jpg");
    }
    number_classes(options);
    refuse_empty_classes(options);
  }

  void number_classes(const ImageFolderOptions& options) {
    const Classes classes = options.classes ? *options.classes : Classes(index.class_folders);
    Classes::Match match = [&] {
      try {
        return classes.match(index.class_folders);
      } catch (const Error& error) {
        throw error.within(root.string());
      }
    }();
    class_names = classes.names();
    labels = std::move(match.labels);
    missing = std::move(match.missing);
    if (missing.empty()) return;
    core::say(core::Level::warning, core::text(root.string(), ": no folder for ", missing.size(),
                                               missing.size() == 1 ? " class" : " classes",
                                               " of training: ", some_of(missing)));
  }

  void refuse_empty_classes(const ImageFolderOptions& options) const {
    std::vector<bool> has_images(index.class_folders.size(), false);
    for (const FolderIndex::Folder& folder : index.folders) has_images[folder.class_folder] = true;
    std::vector<std::string> empty;
    for (std::size_t i = 0; i < has_images.size(); ++i) {
      if (!has_images[i]) empty.push_back(index.class_folders[i]);
    }
    if (empty.empty() || (options.allow_empty && !index.files.empty())) return;
    throw Error(Code::invalid_argument, core::text(root.string(), ": no image in ", some_of(empty)),
                core::text("images end with ", image_suffixes_text(),
                           "; remove the folders, or allow empty ones"));
  }

  [[nodiscard]] const FolderIndex::File& file(std::int64_t number) const {
    return index.files[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] std::string_view name_of(const FolderIndex::File& file) const {
    return std::string_view(index.names).substr(file.name, file.length);
  }
  [[nodiscard]] const std::string& path_of(const FolderIndex::Folder& folder) const {
    return index.walked[folder.path].path;
  }
  [[nodiscard]] std::int64_t label_of(const FolderIndex::Folder& folder) const {
    return labels[folder.class_folder];
  }

  std::filesystem::path root;
  FolderIndex index;
  std::vector<std::string> class_names;
  std::vector<std::int64_t> labels;  // of the class folders
  std::vector<std::string> missing;
};

ImageFolder::ImageFolder(const std::filesystem::path& root, const ImageFolderOptions& options)
    : state_(std::make_unique<const State>(root, options)) {}

ImageFolder::~ImageFolder() = default;

std::int64_t ImageFolder::size() const {
  return static_cast<std::int64_t>(state_->index.files.size());
}

std::int64_t ImageFolder::num_classes() const {
  return static_cast<std::int64_t>(state_->class_names.size());
}

const std::vector<std::string>& ImageFolder::class_names() const { return state_->class_names; }
const std::vector<std::string>& ImageFolder::missing_classes() const { return state_->missing; }

std::int64_t ImageFolder::label(std::int64_t index) const {
  return state_->label_of(state_->index.folders[state_->file(index).folder]);
}

std::string ImageFolder::origin(std::int64_t index) const {
  const FolderIndex::File& file = state_->file(index);
  std::string path = state_->root.string();
  path += '/';
  path += state_->path_of(state_->index.folders[file.folder]);
  path += '/';
  path += state_->name_of(file);
  return path;
}

std::span<const std::byte> ImageFolder::read(std::int64_t index,
                                             std::vector<std::byte>& memory) const {
  return read_whole(origin(index), memory);
}

std::uint64_t ImageFolder::fingerprint() const {
  Fingerprint print;
  std::uint32_t folder = std::numeric_limits<std::uint32_t>::max();
  for (const FolderIndex::File& file : state_->index.files) {
    if (file.folder != folder) {
      const FolderIndex::Folder& next = state_->index.folders[file.folder];
      print.add(state_->path_of(next));
      print.add(static_cast<std::uint64_t>(state_->label_of(next)));
    }
    folder = file.folder;
    print.add(state_->name_of(file));
  }
  return print.value();
}

}  // namespace yoke::feed
