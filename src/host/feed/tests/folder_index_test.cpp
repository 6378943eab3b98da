#include "../folder_index.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../index_cache.hpp"
#include "temporary_folder.hpp"
#include "yoke/core/files.hpp"
#include "yoke/feed/image_folder.hpp"

namespace yoke::feed {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A folder with images of two classes, as old as a day.
class Indexed : public ::testing::Test {
 protected:
  Indexed() {
    add("cat/1.jpg");
    add("cat/deep/2.png");
    add("dog/3.jpg");
    age();
  }

  void add(const std::string& name) const {
    fs::create_directories((root() / name).parent_path());
    std::ofstream(root() / name) << "x";
  }

  // As if nothing had changed for a day.
  void age() const {
    for (const auto& entry : fs::recursive_directory_iterator(root())) make_old(entry.path());
    make_old(root());
  }

  static void make_old(const fs::path& path) {
    struct stat info{};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    const timespec day_ago{info.st_mtim.tv_sec - 86'400, info.st_mtim.tv_nsec};
    const timespec times[]{day_ago, day_ago};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  [[nodiscard]] fs::path root() const { return folder_ / "data"; }
  [[nodiscard]] std::vector<fs::path> kept() const {
    std::vector<fs::path> entries;
    std::error_code none;
    for (fs::directory_iterator entry(folder_ / "cache/yoke/index", none), end; entry != end;
         entry.increment(none)) {
      entries.push_back(entry->path());
    }
    return entries;
  }
  [[nodiscard]] std::vector<std::string> origins() const {
    const ImageFolder images(root());
    std::vector<std::string> all;
    for (std::int64_t i = 0; i < images.size(); ++i)
      all.push_back(fs::path(images.origin(i)).lexically_relative(root()).string());
    return all;
  }

  TemporaryFolder folder_;
  CacheElsewhere cache_{folder_ / "cache"};
};

TEST_F(Indexed, GivesTheSameImagesFromTheIndex) {
  const auto first = origins();
  ASSERT_EQ(kept().size(), 1U);
  const ImageFolder again(root());
  const ImageFolder without(root(), {.cache = false});

  EXPECT_THAT(first, ElementsAre("cat/1.jpg", "cat/deep/2.png", "dog/3.jpg"));
  EXPECT_EQ(origins(), first);
  EXPECT_EQ(again.fingerprint(), without.fingerprint());
  EXPECT_EQ(again.label(2), 1);
}

// Proof that the index is used at all: its names come, whatever the folder holds by now.
TEST_F(Indexed, IsNotListedAgain) {
  FolderIndex index = index_folder(root());
  index.names[0] = '7';
  keep_index(root(), "image folder", to_bytes(index));

  EXPECT_EQ(origins().front(), "cat/7.jpg");
}

TEST_F(Indexed, IsListedAgainWhereAnyFolderChanged) {
  (void)origins();

  add("cat/deep/4.png");

  EXPECT_THAT(origins(), ElementsAre("cat/1.jpg", "cat/deep/2.png", "cat/deep/4.png", "dog/3.jpg"));
  age();
  (void)origins();
  add("eel/5.jpg");
  EXPECT_EQ(origins().size(), 5U);
  fs::remove_all(root() / "cat/deep");
  EXPECT_THAT(origins(), ElementsAre("cat/1.jpg", "dog/3.jpg", "eel/5.jpg"));
}

TEST_F(Indexed, IsNotKeptWhereAFolderChangedAMomentAgo) {
  add("dog/6.jpg");

  EXPECT_EQ(origins().size(), 4U);

  EXPECT_THAT(kept(), IsEmpty());
}

TEST_F(Indexed, IsMadeAnewWhereItWasDamagedAnywhere) {
  const auto whole = origins();
  const fs::path entry = kept().at(0);
  const std::string bytes = core::read_file(entry);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    EXPECT_FALSE(folder_index_from(damaged)) << at;
    EXPECT_FALSE(folder_index_from(std::string_view(bytes).substr(0, at))) << at;
  }

  core::write_atomically(entry, bytes.substr(0, bytes.size() / 2));

  EXPECT_EQ(origins(), whole);
}

TEST_F(Indexed, WorksWithoutACacheThatCanBeWritten) {
  std::ofstream(folder_ / "file") << "x";
  const CacheElsewhere nowhere(folder_ / "file");

  EXPECT_EQ(origins().size(), 3U);
}

}  // namespace
}  // namespace yoke::feed
