#include "yoke/feed/token_file.hpp"

#include <cstring>
#include <fstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "errors.hpp"
#include "temporary_folder.hpp"

namespace yoke::feed {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<std::int64_t>;

// nanoGPT's layout: ids and nothing else.
template <class Id>
std::filesystem::path plain_file(const TemporaryFolder& folder, const std::vector<Id>& ids) {
  std::ofstream(folder / "plain.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(ids.data()),
             static_cast<std::streamsize>(ids.size() * sizeof(Id)));
  return folder / "plain.bin";
}

std::vector<std::uint16_t> counting(std::uint16_t count) {
  std::vector<std::uint16_t> ids;
  for (std::uint16_t i = 0; i < count; ++i) ids.push_back(i);
  return ids;
}

Ids window(const TokenFile& file, std::int64_t start, std::size_t length) {
  Ids ids(length);
  file.copy(start, ids);
  return ids;
}

TEST(Tokens, ComeBackAsTheyWereWritten) {
  const TemporaryFolder folder;
  for (const TokenWidth width : {TokenWidth::two, TokenWidth::four}) {
    TokenWriter writer(folder / "tokens.bin", width);
    writer.add(Ids{0, 65'535, 7});
    writer.add(Ids{8});
    writer.finish();

    const TokenFile file(folder / "tokens.bin");

    EXPECT_TRUE(file.has_head());
    EXPECT_EQ(file.width(), width);
    EXPECT_EQ(file.tokens(), 4);
    EXPECT_THAT(window(file, 1, 3), ElementsAre(65'535, 7, 8));
  }
}

TEST(Tokens, OfNanoGptsLayoutNeedNoHead) {
  const TemporaryFolder folder;

  const TokenFile file(plain_file(folder, counting(10)));

  EXPECT_FALSE(file.has_head());
  EXPECT_THAT(window(file, 7, 3), ElementsAre(7, 8, 9));
}

TEST(Tokens, B064AnIdThatTheWidthCannotHoldIsNotWritten) {
  const TemporaryFolder folder;
  TokenWriter writer(folder / "tokens.bin");

  const Error error = error_of([&] { writer.add(Ids{1, 66'536}); });

  EXPECT_THAT(error.message(), HasSubstr("66536 > 65535"));
  EXPECT_FALSE(std::filesystem::exists(folder / "tokens.bin"));
}

TEST(Tokens, B064WindowsBeginWhereOneFits) {
  const TemporaryFolder folder;

  const Error error =
      error_of([&] { (void)TokenFile(plain_file(folder, counting(8))).windows(9); });

  EXPECT_THAT(error.message(), HasSubstr("need 9, have 8"));
  EXPECT_EQ(TokenFile(plain_file(folder, counting(9))).windows(9), 1);
  EXPECT_EQ(TokenFile(plain_file(folder, counting(10))).windows(9), 2);
}

TEST(Tokens, B064AnIdBeyondTheVocabularyIsNamedWithItsPosition) {
  const TemporaryFolder folder;
  const std::vector<std::uint32_t> wide{5, 149'999, 3};
  const auto path = plain_file(folder, wide);

  const TokenFile right(path, {.width = TokenWidth::four, .vocabulary = 150'000});
  const TokenFile wrong(path, {.width = TokenWidth::two, .vocabulary = 1'000});

  EXPECT_THAT(window(right, 0, 3), ElementsAre(5, 149'999, 3));
  const Error error = error_of([&] { (void)window(wrong, 1, 4); });  // 149999 = 2 * 65536 + 18927
  EXPECT_THAT(error.message(), AllOf(HasSubstr("id 18927"), HasSubstr("position 2")));
}

TEST(Tokens, B064SizesThatDoNotFitAreRefused) {
  const TemporaryFolder folder;
  const auto odd = plain_file(folder, std::vector<std::uint8_t>{1, 2, 3});
  const Error no_pairs = error_of([&] { const TokenFile file(odd); });
  TokenWriter writer(folder / "cut.bin");
  writer.add(Ids{1, 2, 3, 4});
  writer.finish();
  std::filesystem::resize_file(folder / "cut.bin", 1024 + 6);

  const Error cut = error_of([&] { const TokenFile file(folder / "cut.bin"); });

  EXPECT_THAT(no_pairs.message(), AllOf(HasSubstr(odd.string()), HasSubstr("3 bytes")));
  EXPECT_THAT(cut.message(), HasSubstr("expected 4 ids of 2 bytes, found 3"));
}

}  // namespace
}  // namespace yoke::feed
