#include "yoke/data/images.hpp"

#include <map>
#include <mutex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batches.hpp"
#include "errors.hpp"
#include "image_files.hpp"
#include "tar_bytes.hpp"
#include "temporary_folder.hpp"

namespace yoke::data {
namespace {

using feed::error_of;
using feed::transforms::CenterCrop;
using feed::transforms::Normalize;
using feed::transforms::RandomHorizontalFlip;
using feed::transforms::RandomResizedCrop;
using feed::transforms::Resize;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two classes of six photos each, of several sizes.
class Folder : public ::testing::Test {
 protected:
  Folder() {
    for (int i = 0; i < 12; ++i) write(i, feed::jpeg_file(feed::picture(40 + i, 50 - i, seed(i))));
  }

  static unsigned seed(int index) { return static_cast<unsigned>(index) + 1; }
  [[nodiscard]] std::filesystem::path path_of(int index) const {
    return folder_ / (index < 6 ? "photos/ant/" : "photos/bee/") /
           (std::string(1, static_cast<char>('a' + index)) + ".jpg");
  }
  void write(int index, const feed::File& bytes) const { feed::write_file(path_of(index), bytes); }
  [[nodiscard]] std::filesystem::path photos() const { return folder_ / "photos"; }

  static ImageSteps augmented() { return {RandomResizedCrop(16), RandomHorizontalFlip()}; }

  feed::TemporaryFolder folder_;
  feed::CacheElsewhere cache_{folder_ / "cache"};
};

TEST_F(Folder, GivesBytesInChannelsLastMemory) {
  const ImageFolder images(photos(), {Resize(20), CenterCrop(16)}, {.raw = true});
  DataLoader loader(images, Placement{}, {.batch_size = 12, .shuffle = false});

  const Batch batch = *loader.epoch(0).next();

  EXPECT_EQ(batch.input.scalar_type(), at::kByte);
  EXPECT_EQ(batch.input.sizes(), at::IntArrayRef({12, 3, 16, 16}));
  EXPECT_TRUE(batch.input.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(at::equal(batch.target, at::tensor({0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1}, at::kLong)));
  EXPECT_THAT(images.classes(), ElementsAre("ant", "bee"));
  const feed::Transforms same({Resize(20), CenterCrop(16)});
  for (int i = 0; i < 12; ++i) {
    feed::TransformWorkspace workspace;
    feed::Draws draws({});
    std::vector<std::uint8_t> row(same.bytes());  // [16, 16, 3]
    const feed::File file = feed::jpeg_file(feed::picture(40 + i, 50 - i, seed(i)));
    same.apply(file, draws, workspace, std::as_writable_bytes(std::span(row)));
    const at::Tensor expected = at::tensor(row).view({16, 16, 3}).permute({2, 0, 1});
    EXPECT_TRUE(at::equal(batch.input[i], expected)) << i;
  }
}

TEST_F(Folder, IsNormalisedByChannel) {
  const Normalize by{.mean = {0.5F, 0.4F, 0.3F}, .std = {0.25F, 0.2F, 0.1F}};
  DataLoader bytes(ImageFolder(photos(), CenterCrop(16), {.raw = true}), Placement{},
                   {.batch_size = 12, .shuffle = false});
  DataLoader floats(ImageFolder(photos(), {CenterCrop(16), by}), Placement{},
                    {.batch_size = 12, .shuffle = false});
  DataLoader usual(ImageFolder(photos(), CenterCrop(16)), Placement{},
                   {.batch_size = 12, .shuffle = false});

  const at::Tensor raw = bytes.epoch(0).next()->input.to(at::kDouble) / 255;
  const at::Tensor ours = floats.epoch(0).next()->input;
  const at::Tensor imagenet = usual.epoch(0).next()->input;

  const auto channels = [](double r, double g, double b) {
    return at::tensor({r, g, b}, at::kDouble).view({1, 3, 1, 1});
  };
  EXPECT_EQ(ours.scalar_type(), at::kFloat);
  EXPECT_TRUE(ours.is_contiguous(at::MemoryFormat::ChannelsLast));
  // Three roundings of float32 at values of up to 10.
  EXPECT_TRUE(at::allclose(ours.to(at::kDouble),
                           (raw - channels(0.5, 0.4, 0.3)) / channels(0.25, 0.2, 0.1), 0, 1e-5));
  EXPECT_TRUE(at::allclose(imagenet.to(at::kDouble),
                           (raw - channels(0.485, 0.456, 0.406)) / channels(0.229, 0.224, 0.225), 0,
                           1e-5));
}

TEST_F(Folder, LooksTheSameOnAnyNumberOfThreadsAndRanksAndAfterAnyStop) {
  const auto loader_of = [&](unsigned workers, int rank = 0, int ranks = 1) {
    return DataLoader(ImageFolder(photos(), augmented()),
                      Placement{.rank = rank, .world_size = ranks},
                      {.batch_size = 4 / ranks, .seed = 5, .num_workers = workers});
  };
  DataLoader alone = loader_of(0);
  const std::vector<Batch> expected = batches_of(alone, 3);

  for (const unsigned workers : {1U, 4U}) {
    DataLoader threads = loader_of(workers);
    expect_equal(batches_of(threads, 3), expected);
  }
  for (int rank = 0; rank < 2; ++rank) {
    DataLoader part = loader_of(2, rank, 2);
    const std::vector<Batch> batches = batches_of(part, 3);
    for (std::size_t step = 0; step < expected.size(); ++step) {
      EXPECT_TRUE(at::equal(batches[step].input, expected[step].input.narrow(0, 2 * rank, 2)));
    }
  }
  DataLoader stopped = loader_of(2);
  auto epoch = stopped.epoch(3);
  (void)epoch.next();
  DataLoader resumed = loader_of(1);
  resumed.load_state(stopped.state());
  expect_equal(batches_of(resumed, 3), {expected.begin() + 1, expected.end()});
}

TEST_F(Folder, IsAugmentedAnewInEachEpoch) {
  DataLoader loader(ImageFolder(photos(), augmented()), Placement{},
                    {.batch_size = 12, .shuffle = false});

  const at::Tensor first = loader.epoch(0).next()->input.clone();
  const at::Tensor second = loader.epoch(1).next()->input.clone();

  EXPECT_FALSE(at::equal(first, second));
}

TEST_F(Folder, B044NamesTheBadImageAtItsTurn) {
  write(7, {});
  DataLoader loader(ImageFolder(photos(), CenterCrop(16)), Placement{},
                    {.batch_size = 4, .shuffle = false});

  int batches = 0;
  const Error error = error_of([&] {
    for (const Batch& batch : loader.epoch(0)) batches += batch.rows() == 4 ? 1 : 0;
  });

  EXPECT_EQ(batches, 1);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("sample 7"), HasSubstr(path_of(7).string())));
}

TEST_F(Folder, B044LeavesOutBadImagesWithTheStepsAsTheyWere) {
  feed::File cut = feed::jpeg_file(feed::picture(40, 50));
  cut.resize(cut.size() - 54);
  write(1, cut);
  write(7, {});
  std::mutex mutex;
  std::vector<std::int64_t> told;
  const ImageFolder images(
      photos(), CenterCrop(16),
      {.bad_samples = feed::BadSamples::skip, .on_bad = [&](const feed::BadSample& sample) {
         const std::lock_guard lock(mutex);
         told.push_back(sample.index);
       }});
  DataLoader loader(images, Placement{}, {.batch_size = 4, .shuffle = false});

  const std::vector<Batch> batches = batches_of(loader, 0);
  (void)batches_of(loader, 1);

  ASSERT_EQ(batches.size(), 3U);
  EXPECT_THAT(batches[0].indices, ElementsAre(0, 2, 3));
  EXPECT_THAT(batches[1].indices, ElementsAre(4, 5, 6));
  EXPECT_EQ(batches[0].input.size(0), 3);
  EXPECT_TRUE(batches[0].input.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_EQ(batches[1].target.size(0), 3);
  EXPECT_EQ(loader.report().left_out, 4);  // two in each of two epochs
  EXPECT_EQ(images.bad_samples().size(), 2U);
  std::ranges::sort(told);
  EXPECT_THAT(told, ElementsAre(1, 7));  // once each
}

TEST_F(Folder, PutsAnotherImageInPlaceOfABadOne) {
  write(7, {});
  const auto batches = [&](unsigned workers) {
    DataLoader loader(
        ImageFolder(photos(), CenterCrop(16), {.bad_samples = feed::BadSamples::substitute}),
        Placement{}, {.batch_size = 12, .shuffle = false, .num_workers = workers});
    return batches_of(loader, 0);
  };

  const std::vector<Batch> once = batches(0);

  EXPECT_EQ(once[0].rows(), 12);
  EXPECT_FALSE(at::equal(once[0].input[7], at::zeros_like(once[0].input[7])));
  expect_equal(batches(3), once);
}

TEST_F(Folder, TakesItsClassesFromTraining) {
  std::filesystem::rename(photos() / "ant", folder_ / "ant");

  const ImageFolder images(photos(), CenterCrop(16), {.classes = {"ant", "bee", "cat"}});
  DataLoader loader(images, Placement{}, {.batch_size = 6});

  EXPECT_EQ(images.num_classes(), 3);
  EXPECT_TRUE(at::equal(loader.epoch(0).next()->target, at::ones({6}, at::kLong)));
  const Error error =
      error_of([&] { ImageFolder(photos(), CenterCrop(16), {.classes = {"ant", "cat"}}); });
  EXPECT_THAT(error.message(), HasSubstr("bee"));
}

// Shards of 10, 10 and 4 samples.
TEST_F(Folder, B055SharesFewShardsOutToTheLastSample) {
  const feed::File jpeg = feed::jpeg_file(feed::picture(20, 20));
  const std::string image(reinterpret_cast<const char*>(jpeg.data()), jpeg.size());
  for (const auto& [shard, count] : std::map<std::string, int>{{"0", 10}, {"1", 10}, {"2", 4}}) {
    std::vector<feed::Member> members;
    for (int i = 0; i < count; ++i) {
      const std::string key = shard + "-" + std::to_string(i);
      members.push_back({key + ".jpg", image});
      members.push_back({key + ".cls", std::to_string(i % 3)});
    }
    const std::string tar = feed::tar_bytes(members);
    feed::write_file(folder_ / ("shards/" + shard + ".tar"), feed::bytes_of(tar));
  }
  const Images images(folder_ / "shards", CenterCrop(16));

  for (const int ranks : {2, 4, 5}) {
    std::int64_t rows = 0;
    std::set<std::int64_t> steps;
    for (int rank = 0; rank < ranks; ++rank) {
      DataLoader loader(images, Placement{.rank = rank, .world_size = ranks},
                        evaluation({.batch_size = 2}));
      const std::vector<Batch> batches = batches_of(loader, 0);
      steps.insert(static_cast<std::int64_t>(batches.size()));
      for (const Batch& batch : batches) rows += batch.rows();
    }
    EXPECT_EQ(rows, 24) << ranks;
    EXPECT_EQ(steps.size(), 1U) << ranks;
  }
}

TEST_F(Folder, ReportsWhereItsTimeGoes) {
  DataLoader loader(ImageFolder(photos(), CenterCrop(16)), Placement{},
                    {.batch_size = 4, .num_workers = 1});
  (void)batches_of(loader, 0);

  const DataLoader::Report report = loader.report();

  ASSERT_EQ(report.stages.size(), 2U);
  EXPECT_EQ(report.stages[1].name, "decode and transform");
  EXPECT_GT(report.stages[1].spent.count(), 0);
  EXPECT_EQ(report.workers, 1U);
  EXPECT_EQ(report.host_bytes, 6 * (4 * 3 * 16 * 16 + 256));  // slots of pixels and labels
}

TEST_F(Folder, KeepsWithinItsBudgetOfMemory) {
  const auto loader_of = [&](std::int64_t budget) {
    return DataLoader(ImageFolder(photos(), augmented()), Placement{},
                      {.batch_size = 4, .seed = 5, .memory_budget = budget});
  };
  constexpr std::int64_t kSlot = 4 * 3 * 16 * 16 + 256;
  DataLoader rich = loader_of(0);
  DataLoader poor = loader_of(2 * kSlot + 1);

  EXPECT_EQ(poor.report().host_bytes, 2 * kSlot);
  expect_equal(batches_of(poor, 0), batches_of(rich, 0));
  EXPECT_THAT(error_of([&] { loader_of(2 * kSlot - 1); }).message(),
              HasSubstr("exceed the budget of " + std::to_string(2 * kSlot - 1)));
}

}  // namespace
}  // namespace yoke::data
