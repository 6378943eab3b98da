#include "yoke/feed/labelled_images.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {

Normalise default_normalise(const std::filesystem::path& source) {
  // Over the 60,000 training images; a test of room data computes them.
  constexpr Normalise kOfFashionMnist{.mean = 0.2860F, .std = 0.3530F};
  const bool is_it = source == kFashionMnist || source == kFashionMnistFolder;
  return is_it ? kOfFashionMnist : Normalise{};
}

namespace {

namespace fs = std::filesystem;

struct Role {
  std::string_view stem;
  std::string_view suffix;
};

constexpr Role kImages{"images", "idx3-ubyte"};
constexpr Role kLabels{"labels", "idx1-ubyte"};

std::vector<fs::path> candidates(const fs::path& folder, Split split, Role role) {
  const std::string_view prefix = split == Split::train ? "train" : "t10k";
  std::vector<fs::path> paths;
  for (const fs::path& place : {folder, folder / "raw"}) {
    for (const char* separator : {"-", "."}) {
      for (const char* packing : {"", ".gz"}) {
        paths.push_back(place /
                        core::text(prefix, "-", role.stem, separator, role.suffix, packing));
      }
    }
  }
  return paths;
}

fs::path find_file(const fs::path& folder, Split split, Role role) {
  std::error_code none;
  if (!fs::is_directory(folder, none)) {
    throw Error(Code::not_found, core::text("open data set ", folder.string(), ": no such folder"),
                folder == kFashionMnistFolder ? "apt-get install dataset-fashion-mnist"
                                              : "give a folder of IDX files");
  }
  std::vector<std::string> looked_for;
  for (const fs::path& path : candidates(folder, split, role)) {
    if (fs::exists(path, none)) return path;
    looked_for.push_back(path.lexically_relative(folder).string());
  }
  throw Error(Code::not_found,
              core::text("open data set ", folder.string(), ": no file of ", name(split), " ",
                         role.stem, "; looked for ", core::joined(looked_for)),
              "give the folder that holds the IDX files");
}

void check_kinds(const IdxFile& images, const IdxFile& labels) {
  if (images.type() != IdxType::u8 || images.dims().size() < 3 || images.dims().size() > 4) {
    throw Error(Code::invalid_argument,
                core::text("open images ", images.path().string(),
                           ": expected 3 or 4 dimensions of u8, found ", images.dims().size(),
                           " of ", name(images.type())),
                "check that images and labels are not exchanged");
  }
  const bool fractions = labels.type() == IdxType::f32 || labels.type() == IdxType::f64;
  if (fractions || labels.dims().size() != 1) {
    throw Error(Code::invalid_argument,
                core::text("open labels ", labels.path().string(),
                           ": expected 1 dimension of integers, found ", labels.dims().size(),
                           " of ", name(labels.type())),
                "check that images and labels are not exchanged");
  }
  if (images.items() != labels.items()) {
    throw Error(Code::invalid_argument,
                core::text("open data set: ", images.items(), " images in ", images.path().string(),
                           ", but ", labels.items(), " labels in ", labels.path().string()),
                "use two files of one set");
  }
}

std::int64_t checked_classes(const IdxFile& labels, std::int64_t num_classes) {
  std::int64_t largest = -1;
  for (std::int64_t i = 0; i < labels.items(); ++i) {
    const std::int64_t label = labels.integer(i);
    if (label < 0 || (num_classes > 0 && label >= num_classes)) {
      throw Error(
          Code::invalid_argument,
          core::text("open labels ", labels.path().string(), ": sample ", i, " has label ", label,
                     num_classes > 0 ? core::text(", but there are ", num_classes,
                                                  " classes (0 to ", num_classes - 1, ")")
                                     : ", below 0"),
          "give the number of classes that the set has, or mend the file");
    }
    largest = std::max(largest, label);
  }
  return num_classes > 0 ? num_classes : largest + 1;
}

bool has_images_of(const fs::path& folder, Split split) {
  return std::ranges::any_of(candidates(folder, split, kImages), [](const fs::path& path) {
    std::error_code none;
    return fs::exists(path, none);
  });
}

}  // namespace

std::string_view name(Split split) noexcept { return split == Split::train ? "train" : "test"; }

LabelledImages::LabelledImages(IdxFile images, IdxFile labels, std::int64_t num_classes)
    : images_(std::move(images)), labels_(std::move(labels)), num_classes_(num_classes) {}

LabelledImages LabelledImages::open(const fs::path& images_path, const fs::path& labels_path,
                                    std::int64_t num_classes) {
  IdxFile images = open_idx(images_path);
  IdxFile labels = open_idx(labels_path);
  check_kinds(images, labels);
  const std::int64_t classes = checked_classes(labels, num_classes);
  return {std::move(images), std::move(labels), classes};
}

bool LabelledImages::is_there(const fs::path& folder) {
  return has_images_of(folder, Split::train) || has_images_of(folder, Split::test);
}

LabelledImages LabelledImages::find(const fs::path& folder, Split split, std::int64_t num_classes) {
  const fs::path images = find_file(folder, split, kImages);
  return open(images, find_file(folder, split, kLabels), num_classes);
}

}  // namespace yoke::feed
