#include "yoke/data/tokens.hpp"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batches.hpp"
#include "errors.hpp"
#include "temporary_folder.hpp"

namespace yoke::data {
namespace {

using feed::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The ids 0, 1, ..., count - 1.
std::filesystem::path counting(const feed::TemporaryFolder& folder, std::int64_t count) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  feed::TokenWriter writer(folder / "tokens.bin");
  writer.add(ids);
  writer.finish();
  return folder / "tokens.bin";
}

TEST(Tokens, AreWindowsWithTargetsOneFurther) {
  const feed::TemporaryFolder folder;
  const Tokens tokens(counting(folder, 100), {.length = 8});
  DataLoader loader(tokens, Placement{}, {.batch_size = 5});

  EXPECT_EQ(tokens.size(), 12);  // 96 of 99 ids that have one behind them
  for (const Batch& batch : loader.epoch(0)) {
    const at::Tensor starts = at::tensor(batch.indices, at::kLong).unsqueeze(1) * 8;
    const at::Tensor expected = starts + at::arange(8, at::kLong);
    EXPECT_TRUE(at::equal(batch.input, expected));
    EXPECT_TRUE(at::equal(batch.target, expected + 1));
  }
}

TEST(Tokens, MayBeginAtEveryId) {
  const feed::TemporaryFolder folder;

  EXPECT_EQ(Tokens(counting(folder, 10), {.length = 8, .stride = 1}).size(), 2);
  EXPECT_EQ(Tokens(counting(folder, 9), {.length = 8, .stride = 1}).size(), 1);
}

TEST(Tokens, B064RefuseAFileThatIsTooShortAndAnIdBeyondTheVocabulary) {
  const feed::TemporaryFolder folder;
  const auto path = counting(folder, 100);

  EXPECT_THAT(error_of([&] { Tokens(path, {.length = 100}); }).message(),
              AllOf(HasSubstr("need 101"), HasSubstr("have 100")));
  DataLoader loader(Tokens(path, {.length = 8, .file = {.vocabulary = 50}}), Placement{},
                    {.batch_size = 1, .shuffle = false});
  EXPECT_THAT(error_of([&] { batches_of(loader, 0); }).message(),
              HasSubstr("id 50 at position 50"));
}

}  // namespace
}  // namespace yoke::data
