#include "yoke/feed/pack.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "errors.hpp"
#include "image_files.hpp"
#include "temporary_folder.hpp"
#include "yoke/core/files.hpp"
#include "yoke/feed/image_folder.hpp"
#include "yoke/feed/survey.hpp"

namespace yoke::feed {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Source : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "in/a/0.jpg", jpeg_file(picture(60, 40)));
    write_file(folder_ / "in/a/1.jpg", jpeg_file(picture(60, 40), {.progressive = true}));
    write_file(folder_ / "in/b/2.jpg", jpeg_file(picture(60, 40), {.cmyk = true}));
    write_file(folder_ / "in/b/3.jpg", jpeg_file(picture(60, 40), {.orientation = 6}));
    write_file(folder_ / "in/b/4.png", jpeg_file(picture(300, 200)));
  }

  static std::vector<std::byte> bytes(const EncodedImages& images, std::int64_t index) {
    std::vector<std::byte> memory;
    const auto view = images.read(index, memory);
    return {view.begin(), view.end()};
  }

  TemporaryFolder folder_;
  CacheElsewhere cache_{folder_ / "cache"};
};

TEST_F(Source, IsSurveyedWithEveryKindCounted) {
  write_file(folder_ / "in/a/9.jpg", {});

  const Survey found = survey(ImageFolder(folder_ / "in"), {.decode = true, .workers = 2});

  EXPECT_EQ(found.samples, 6);
  EXPECT_EQ(found.progressive, 1);
  EXPECT_EQ(found.cmyk, 1);
  EXPECT_EQ(found.turned, 1);
  EXPECT_EQ(found.other_suffix, 1);
  EXPECT_EQ(found.width.most, 300);
  EXPECT_THAT(found.per_class, ElementsAre(3, 3));
  ASSERT_EQ(found.broken.size(), 1U);
  EXPECT_THAT(found.broken[0].origin, HasSubstr("in/a/9.jpg"));
}

TEST_F(Source, BecomesBaselineRgbOfTheSizeAskedForInBothFormats) {
  const ImageFolder source(folder_ / "in");
  for (const PackFormat format : {PackFormat::tar, PackFormat::lmdb}) {
    const fs::path target = folder_ / (format == PackFormat::tar ? "tar" : "lmdb");

    const PackReport report = pack(
        source, target, {.format = format, .short_side = 100, .shard_samples = 2, .workers = 2});

    EXPECT_EQ(report.kept, 1);
    EXPECT_EQ(report.encoded, 4);
    const auto packed = open_images(target);
    const Survey found = survey(*packed, {.decode = true});
    EXPECT_EQ(found.samples, 5);
    EXPECT_EQ(found.progressive + found.cmyk + found.turned, 0);
    EXPECT_TRUE(found.broken.empty());
    EXPECT_EQ(found.height.most, 100);
    EXPECT_THAT(packed->class_names(), ElementsAre("a", "b"));
    for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(packed->label(i), source.label(i));
    EXPECT_EQ(bytes(*packed, 0), bytes(source, 0));
  }
}

TEST_F(Source, GoesOnBehindWhatWasPackedBefore) {
  const ImageFolder source(folder_ / "in");
  const PackOptions options{.shard_samples = 2};
  (void)pack(source, folder_ / "whole", options);
  (void)pack(source, folder_ / "half", options);
  fs::remove(folder_ / "half/pack-00002.tar");

  const PackReport report = pack(source, folder_ / "half", options);

  EXPECT_EQ(report.resumed, 4);
  EXPECT_EQ(report.kept + report.encoded, 1);
  EXPECT_EQ(core::read_file(folder_ / "half/pack-00002.tar"),
            core::read_file(folder_ / "whole/pack-00002.tar"));
}

TEST_F(Source, ABrokenImageEndsPackingUnlessItMayBeLeftOut) {
  write_file(folder_ / "in/a/9.jpg", {});
  const ImageFolder source(folder_ / "in");

  const Error error = error_of([&] { (void)pack(source, folder_ / "strict"); });
  const PackReport report = pack(source, folder_ / "loose", {.skip_broken = true});

  EXPECT_THAT(error.message(), HasSubstr("in/a/9.jpg"));
  EXPECT_EQ(report.broken.size(), 1U);
  EXPECT_EQ(open_images(folder_ / "loose")->size(), 5);
}

TEST_F(Source, IsNotPackedIntoAFolderOfSomethingElse) {
  const ImageFolder source(folder_ / "in");
  (void)pack(source, folder_ / "out", {.quality = 90, .shard_samples = 10});

  const Error other = error_of([&] { (void)pack(source, folder_ / "in"); });
  const Error quality = error_of([&] { (void)pack(source, folder_ / "out", {.quality = 80}); });

  EXPECT_THAT(other.message(), HasSubstr("something else is there"));
  EXPECT_THAT(quality.message(), HasSubstr("other options"));
}

}  // namespace
}  // namespace yoke::feed
