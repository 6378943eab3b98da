#include "yoke/feed/image_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "errors.hpp"
#include "image_files.hpp"
#include "temporary_folder.hpp"
#include "yoke/core/console.hpp"

namespace yoke::feed {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Folder : public ::testing::Test {
 protected:
  void SetUp() override { before_ = core::attach(console_); }
  void TearDown() override { core::attach(before_); }

  void put(const std::string& name) const { write_file(folder_ / name, kPixels); }
  [[nodiscard]] std::vector<std::string> warnings() const { return console_->lines(); }

  // "cat/1.png" of each image, in order.
  [[nodiscard]] std::vector<std::string> names(const ImageFolder& images) const {
    std::vector<std::string> list;
    for (std::int64_t i = 0; i < images.size(); ++i) {
      list.push_back(images.origin(i).substr(folder_.path().string().size() + 1));
    }
    return list;
  }
  static std::vector<std::int64_t> labels(const ImageFolder& images) {
    std::vector<std::int64_t> list;
    for (std::int64_t i = 0; i < images.size(); ++i) list.push_back(images.label(i));
    return list;
  }

  const std::vector<std::byte> kPixels{std::byte{0xFF}, std::byte{0xD8}, std::byte{0xFF}};
  TemporaryFolder folder_;
  std::shared_ptr<core::RecordingConsole> console_ = std::make_shared<core::RecordingConsole>();
  std::shared_ptr<core::Console> before_;
};

TEST_F(Folder, HasImagesInTheOrderOfTheirBytes) {
  for (const char* name : {"b/2.JPG", "b/10.jpeg", "a/z.png", "a/sub/1.png", "a/sub-x/1.png",
                           "a/sub/deep/1.png", "a/notes.txt", "readme.md"}) {
    put(name);
  }

  const ImageFolder images(folder_.path());

  EXPECT_THAT(names(images), ElementsAre("a/z.png", "a/sub/1.png", "a/sub-x/1.png",
                                         "a/sub/deep/1.png", "b/10.jpeg", "b/2.JPG"));
  EXPECT_THAT(labels(images), ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_THAT(images.class_names(), ElementsAre("a", "b"));
  EXPECT_THAT(warnings(), IsEmpty());
}

TEST_F(Folder, B041NamesClassesWithoutImagesAndTheSuffixes) {
  put("cat/1.png");
  put("bird/readme.txt");
  std::filesystem::create_directories(folder_ / "dog");

  const Error error = error_of([&] { const ImageFolder images(folder_.path()); });
  const ImageFolder allowed(folder_.path(), {.allow_empty = true});

  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("bird, dog"), Not(HasSubstr("cat"))));
  EXPECT_THAT(error.hint(), HasSubstr(".jpg, .jpeg, .png"));
  EXPECT_THAT(allowed.class_names(), ElementsAre("bird", "cat", "dog"));
  EXPECT_THAT(labels(allowed), ElementsAre(1));
}

TEST_F(Folder, B041SaysThatAnEmptyRootHasNoClassFolder) {
  const Error error = error_of([&] { const ImageFolder images(folder_.path()); });

  EXPECT_THAT(error.message(), HasSubstr("no class folder in " + folder_.path().string()));
}

TEST_F(Folder, B042LeavesOutAHiddenFolderWithOneWarning) {
  for (const char* name :
       {".ipynb_checkpoints/a-checkpoint.png", "a/1.png", "b/1.png", ".DS_Store"}) {
    put(name);
  }

  const ImageFolder images(folder_.path());

  EXPECT_THAT(images.class_names(), ElementsAre("a", "b"));
  EXPECT_THAT(labels(images), ElementsAre(0, 1));
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr(".ipynb_checkpoints")));
}

TEST_F(Folder, B043NumbersClassesByTheBytesOfTheirNames) {
  for (const char* name : {"1/a.png", "2/a.png", "10/a.png"}) put(name);

  EXPECT_THAT(ImageFolder(folder_.path()).class_names(), ElementsAre("1", "10", "2"));
}

TEST_F(Folder, B043ASplitTakesItsNumbersFromTraining) {
  for (const char* name : {"train/0/a.png", "train/90/a.png", "train/180/a.png", "train/270/a.png",
                           "val/0/a.png", "val/90/a.png", "val/270/a.png"}) {
    put(name);
  }
  const ImageFolder train(folder_ / "train");

  const ImageFolder valid(folder_ / "val", {.classes = Classes(train.class_names())});

  EXPECT_THAT(names(valid), ElementsAre("val/0/a.png", "val/270/a.png", "val/90/a.png"));
  EXPECT_THAT(labels(valid), ElementsAre(0, 2, 3));
  EXPECT_THAT(warnings(), ElementsAre(AllOf(HasSubstr("180"), HasSubstr("1 class"))));
}

TEST_F(Folder, B043RefusesAClassThatTrainingDoesNotHave) {
  put("cats/1.png");

  const Error error = error_of(
      [&] { const ImageFolder images(folder_.path(), {.classes = Classes({"cat", "dog"})}); });

  EXPECT_THAT(error.message(), AllOf(HasSubstr("\"cats\""), HasSubstr(folder_.path().string())));
}

TEST_F(Folder, RefusesImagesThatWouldBeMissingInSilence) {
  put("cat/1.png");
  put("cat/2.bmp");

  const Error error = error_of([&] { const ImageFolder images(folder_.path()); });

  EXPECT_EQ(error.code(), Code::unsupported);
  EXPECT_THAT(error.message(), HasSubstr("2.bmp"));
}

TEST_F(Folder, KeepsANameThatIsNotUtf8) {
  put("cat/\xFF\xFE.png");

  const ImageFolder images(folder_.path());
  std::vector<std::byte> memory;

  EXPECT_EQ(images.read(0, memory).size(), 3U);
}

TEST_F(Folder, NamesAPathThatIsNotThere) {
  const Error error = error_of([&] { const ImageFolder images(folder_ / "nowhere"); });

  EXPECT_EQ(error.code(), Code::not_found);
  EXPECT_THAT(error.message(), HasSubstr((folder_ / "nowhere").string()));
}

TEST_F(Folder, EndsWhereALinkPointsToAFolderAboveIt) {
  put("cat/1.png");
  std::filesystem::create_directory_symlink(folder_.path(), folder_ / "cat/loop");

  const Error error = error_of([&] { const ImageFolder images(folder_.path()); });

  EXPECT_THAT(error.hint(), HasSubstr("link"));
}

TEST_F(Folder, FingerprintTellsListsApart) {
  put("a/1.png");
  const auto before = ImageFolder(folder_.path()).fingerprint();
  EXPECT_EQ(ImageFolder(folder_.path()).fingerprint(), before);

  put("a/2.png");

  EXPECT_NE(ImageFolder(folder_.path()).fingerprint(), before);
}

}  // namespace
}  // namespace yoke::feed
