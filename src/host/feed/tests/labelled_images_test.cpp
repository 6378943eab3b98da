#include "yoke/feed/labelled_images.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "errors.hpp"
#include "idx_bytes.hpp"
#include "temporary_folder.hpp"

namespace yoke::feed {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Images : public ::testing::Test {
 protected:
  void put(const std::string& name, std::string_view bytes) {
    fs::create_directories((folder_ / name).parent_path());
    core::write_atomically(folder_ / name, bytes);
  }

  TemporaryFolder folder_;
  CacheElsewhere cache_{folder_ / "cache"};
};

TEST_F(Images, AreFoundUnderEachOfTheNamesThatMnistHas) {
  const std::string images = counting_images({3, 2, 2});
  const std::string labels = labels_file({1, 0, 4});
  put("plain/train-images-idx3-ubyte", images);
  put("plain/train-labels-idx1-ubyte", labels);
  put("dots/train-images.idx3-ubyte", images);
  put("dots/train-labels.idx1-ubyte", labels);
  put("packed/train-images-idx3-ubyte.gz", gzipped(images));
  put("packed/train-labels-idx1-ubyte.gz", gzipped(labels));
  put("vision/raw/train-images-idx3-ubyte", images);
  put("vision/raw/train-labels-idx1-ubyte", labels);

  for (const char* name : {"plain", "dots", "packed", "vision"}) {
    const LabelledImages set = LabelledImages::find(folder_ / name, Split::train);

    EXPECT_EQ(set.size(), 3) << name;
    EXPECT_EQ(set.num_classes(), 5) << name;
    EXPECT_EQ(set.label(2), 4) << name;
    EXPECT_EQ(set.images().item(1)[3], std::byte{7}) << name;
  }
}

TEST_F(Images, OfTheTestSplitAreOtherFiles) {
  put("t10k-images-idx3-ubyte", counting_images({2, 2, 2}));
  put("t10k-labels-idx1-ubyte", labels_file({0, 1}));

  EXPECT_EQ(LabelledImages::find(folder_.path(), Split::test).size(), 2);
  EXPECT_THROW((void)LabelledImages::find(folder_.path(), Split::train), Error);
}

TEST_F(Images, B048NameBothCountsWhereLabelsAreMissing) {
  put("train-images-idx3-ubyte", counting_images({3, 2, 2}));
  put("train-labels-idx1-ubyte", labels_file({0, 1}));

  const Error error = error_of([&] { (void)LabelledImages::find(folder_.path(), Split::train); });

  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("3 images in"), HasSubstr("2 labels in"),
                                     HasSubstr("train-labels-idx1-ubyte")));
}

TEST_F(Images, NameTheSampleWhoseLabelIsOutsideTheClasses) {
  put("train-images-idx3-ubyte", counting_images({3, 2, 2}));
  put("train-labels-idx1-ubyte", labels_file({0, 9, 12}));

  const Error error =
      error_of([&] { (void)LabelledImages::find(folder_.path(), Split::train, 10); });

  EXPECT_THAT(error.message(),
              HasSubstr("sample 2 has label 12, but there are 10 classes (0 to 9)"));
}

TEST_F(Images, NameTheSampleWhoseLabelIsNegative) {
  put("train-images-idx3-ubyte", counting_images({2, 2, 2}));
  std::string labels = idx_header(IdxType::i8, {2});
  append_big_endian(labels, 0, 1);
  append_big_endian(labels, 0xFF, 1);
  put("train-labels-idx1-ubyte", labels);

  const Error error = error_of([&] { (void)LabelledImages::find(folder_.path(), Split::train); });

  EXPECT_THAT(error.message(), HasSubstr("sample 1 has label -1, below 0"));
}

TEST_F(Images, ListWhatWasLookedForWhereAFileIsMissing) {
  put("train-images-idx3-ubyte", counting_images({2, 2, 2}));

  const Error error = error_of([&] { (void)LabelledImages::find(folder_.path(), Split::train); });

  EXPECT_EQ(error.code(), Code::not_found);
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr(folder_.path().string()), HasSubstr("no file of train labels"),
                    HasSubstr("train-labels-idx1-ubyte, train-labels-idx1-ubyte.gz"),
                    HasSubstr("raw/train-labels.idx1-ubyte.gz")));
}

TEST_F(Images, NameTheFolderThatIsMissing) {
  const Error error = error_of([&] { (void)LabelledImages::find(folder_ / "none", Split::train); });

  EXPECT_EQ(error.code(), Code::not_found);
  EXPECT_THAT(error.message(), HasSubstr("none: no such folder"));
}

TEST_F(Images, AreRefusedWhenExchangedWithTheirLabels) {
  put("images", counting_images({2, 2, 2}));
  put("labels", labels_file({0, 1}));

  const Error error =
      error_of([&] { (void)LabelledImages::open(folder_ / "labels", folder_ / "images"); });

  EXPECT_THAT(error.message(), HasSubstr("expected 3 or 4 dimensions of u8, found 1 of u8"));
  EXPECT_THAT(error.hint(), HasSubstr("exchanged"));
}

TEST_F(Images, OfDebiansPackageAreAllThere) {
  if (!fs::exists(kFashionMnistFolder)) {
    GTEST_SKIP() << "Debian's package dataset-fashion-mnist is not installed";
  }

  const LabelledImages set = LabelledImages::find(kFashionMnistFolder, Split::test, 10);

  EXPECT_EQ(set.size(), 10'000);
  EXPECT_THAT(set.images().dims(), ::testing::ElementsAre(10'000, 28, 28));
}

}  // namespace
}  // namespace yoke::feed
