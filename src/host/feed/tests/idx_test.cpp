#include "yoke/feed/idx.hpp"

#include <bit>
#include <cstring>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "errors.hpp"
#include "idx_bytes.hpp"
#include "temporary_folder.hpp"
#include "yoke/core/console.hpp"

namespace yoke::feed {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Idx : public ::testing::Test {
 protected:
  fs::path put(const std::string& name, std::string_view bytes) {
    core::write_atomically(folder_ / name, bytes);
    return folder_ / name;
  }

  [[nodiscard]] std::size_t cached() const {
    const fs::path entries = folder_ / "cache" / "yoke" / "unpacked";
    if (!fs::exists(entries)) return 0;
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(entries), fs::directory_iterator{}));
  }

  TemporaryFolder folder_;
  CacheElsewhere cache_{folder_ / "cache"};
};

template <class T>
std::vector<T> values(const IdxFile& file) {
  std::vector<T> out(file.bytes().size() / sizeof(T));
  std::memcpy(out.data(), file.bytes().data(), file.bytes().size());
  return out;
}

TEST_F(Idx, HoldsTypeDimsAndItemsOfAFileOfBytes) {
  const fs::path path = put("images", counting_images({3, 2, 2}));

  const IdxFile file = open_idx(path);

  EXPECT_EQ(file.type(), IdxType::u8);
  EXPECT_THAT(file.dims(), ::testing::ElementsAre(3, 2, 2));
  EXPECT_EQ(file.items(), 3);
  EXPECT_EQ(file.item(2).size(), 4U);
  EXPECT_EQ(file.item(2)[1], std::byte{9});
  EXPECT_EQ(file.integer(11), 11);
}

TEST_F(Idx, TurnsEveryTypeIntoThisMachinesByteOrder) {
  std::string i8 = idx_header(IdxType::i8, {2});
  append_big_endian(i8, 0xFF, 1);
  append_big_endian(i8, 5, 1);
  std::string i16 = idx_header(IdxType::i16, {2});
  append_big_endian(i16, 0xFFFE, 2);
  append_big_endian(i16, 258, 2);
  std::string f32 = idx_header(IdxType::f32, {1});
  append_big_endian(f32, std::bit_cast<std::uint32_t>(1.5F), 4);
  std::string f64 = idx_header(IdxType::f64, {1});
  append_big_endian(f64, std::bit_cast<std::uint64_t>(-2.25), 8);

  EXPECT_EQ(parse_idx(as_bytes(i8), "i8").integer(0), -1);
  EXPECT_EQ(parse_idx(as_bytes(i16), "i16").integer(0), -2);
  EXPECT_EQ(parse_idx(as_bytes(i16), "i16").integer(1), 258);
  EXPECT_THAT(values<float>(parse_idx(as_bytes(f32), "f32")), ::testing::ElementsAre(1.5F));
  EXPECT_THAT(values<double>(parse_idx(as_bytes(f64), "f64")), ::testing::ElementsAre(-2.25));
}

TEST_F(Idx, B048ReadsLabelsOfFourBytesInTheRightOrder) {
  std::string bytes = idx_header(IdxType::i32, {2, 8});
  for (std::uint32_t i = 0; i < 16; ++i) append_big_endian(bytes, 5 + i, 4);

  const IdxFile file = open_idx(put("labels", bytes));

  EXPECT_EQ(file.integer(0), 5);
  EXPECT_EQ(file.integer(15), 20);
}

TEST_F(Idx, B048ReadsGzipDataUnderAPlainName) {
  const fs::path path = put("images-idx3-ubyte", gzipped(counting_images({2, 2, 3})));

  const IdxFile file = open_idx(path);

  EXPECT_THAT(file.dims(), ::testing::ElementsAre(2, 2, 3));
  EXPECT_EQ(file.integer(11), 11);
}

TEST_F(Idx, B048SaysThatAnEmptyFileIsEmpty) {
  const fs::path path = put("images", "");

  const Error error = error_of([&] { (void)open_idx(path); });

  EXPECT_EQ(error.code(), Code::corrupt_data);
  EXPECT_THAT(error.message(), AllOf(HasSubstr(path.string()), HasSubstr("the file is empty"),
                                     HasSubstr("at least 8 bytes, found 0")));
}

TEST_F(Idx, B048TruncatedFileNamesBothSizes) {
  std::string bytes = counting_images({2, 2, 3});
  bytes.pop_back();
  const fs::path path = put("images", bytes);
  const fs::path packed = put("images.gz", gzipped(bytes));

  for (const fs::path& each : {path, packed}) {
    const Error error = error_of([&] { (void)open_idx(each); });

    EXPECT_EQ(error.code(), Code::corrupt_data);
    EXPECT_THAT(error.message(), AllOf(HasSubstr(each.string()),
                                       HasSubstr("expected 28 bytes for 2 x 2 x 3 u8, found 27")));
  }
}

TEST_F(Idx, NamesTrailingBytes) {
  const std::string bytes = counting_images({2, 2, 3}) + std::string(5000, 'x');

  for (const std::string& each : {bytes, gzipped(bytes)}) {
    const Error error = error_of([&] { (void)parse_idx(as_bytes(each), "images"); });

    EXPECT_THAT(error.message(), HasSubstr("expected 28 bytes for 2 x 2 x 3 u8, found 5028 (5000 "
                                           "trailing bytes)"));
  }
}

TEST_F(Idx, RefusesAHeaderThatIsNotItsOwn) {
  const auto message = [](std::string_view bytes) {
    return error_of([&] { (void)parse_idx(as_bytes(bytes), "odd"); }).message();
  };

  EXPECT_THAT(message("PK\3\4 a zip file"),
              HasSubstr("not an IDX file: it begins with the number"));
  EXPECT_THAT(message(std::string("\0\0\7\1\0\0\0\0", 8)), HasSubstr("not an IDX file"));
  EXPECT_THAT(message(std::string("\0\0\10\0\0\0\0\0", 8)), HasSubstr("announces 0 dimensions"));
  EXPECT_THAT(message(std::string("\0\0\10\11", 4)), HasSubstr("announces 9 dimensions (1 to 8)"));
  EXPECT_THAT(message(std::string("\0\0\10\3\0\0\0\1", 8)), HasSubstr("has 16 bytes, found 8"));
  EXPECT_THAT(message("abc"), HasSubstr("at least 8 bytes, found 3"));
}

TEST_F(Idx, RefusesDimsThatNoFileCanHold) {
  const std::uint32_t most = 0xFFFFFFFF;
  const std::string overflow = idx_header(IdxType::f64, {most, most, most, most});
  const std::string huge = idx_header(IdxType::u8, {most, 256});
  const auto message = [](std::string_view bytes) {
    return error_of([&] { (void)parse_idx(as_bytes(bytes), "odd"); }).message();
  };

  EXPECT_THAT(message(overflow), HasSubstr("more than a file can hold"));
  EXPECT_THAT(message(huge), HasSubstr("expected 1099511627532 bytes for 4294967295 x 256 u8"));
  // Packed, it must not be believed before memory is asked for.
  EXPECT_THAT(message(gzipped(huge)), HasSubstr("cannot hold more than"));
}

TEST_F(Idx, HoldsNoItemsWhereTheFirstDimIsZero) {
  const IdxFile file = parse_idx(as_bytes(idx_header(IdxType::u8, {0, 28, 28})), "none");

  EXPECT_EQ(file.items(), 0);
  EXPECT_TRUE(file.bytes().empty());
}

TEST_F(Idx, RefusesBrokenGzipDataWhereverItIsCut) {
  const std::string packed = gzipped(counting_images({50, 4, 5}));

  for (std::size_t length = 2; length < packed.size(); ++length) {
    const auto cut = as_bytes(std::string_view(packed).substr(0, length));
    const Error error = error_of([&] { (void)parse_idx(cut, "cut.gz"); });
    EXPECT_EQ(error.code(), Code::corrupt_data) << length;
    EXPECT_THAT(error.message(), HasSubstr("cut.gz")) << length;
  }
}

TEST_F(Idx, RefusesAFlippedBitInGzipData) {
  const std::string packed = gzipped(counting_images({50, 4, 5}));
  // Bytes 3 to 9 hold a name's presence, time and system, which say nothing about the data.
  for (std::size_t i = 10; i < packed.size(); ++i) {
    std::string flipped = packed;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    EXPECT_THROW((void)parse_idx(as_bytes(flipped), "flipped.gz"), Error) << i;
  }
}

TEST_F(Idx, ReadsGzipDataInSeveralMembersAndPaddedWithZeros) {
  const std::string plain = counting_images({50, 4, 5});
  const std::string packed = gzipped(std::string_view(plain).substr(0, 9)) +
                             gzipped(std::string_view(plain).substr(9)) + std::string(512, '\0');

  const IdxFile file = parse_idx(as_bytes(packed), "members.gz");

  EXPECT_EQ(file.items(), 50);
  EXPECT_EQ(file.integer(999), 999 % 256);
}

TEST_F(Idx, RefusesGarbageAfterGzipData) {
  const std::string packed = gzipped(counting_images({2, 2})) + "garbage";

  EXPECT_THAT(error_of([&] { (void)parse_idx(as_bytes(packed), "a.gz"); }).message(),
              HasSubstr("7 trailing bytes that are not gzip data"));
}

TEST_F(Idx, NamesAFileThatIsNotThereOrIsAFolder) {
  const Error missing = error_of([&] { (void)open_idx(folder_ / "none"); });
  const Error folder = error_of([&] { (void)open_idx(folder_.path()); });

  EXPECT_EQ(missing.code(), Code::not_found);
  EXPECT_THAT(missing.message(), HasSubstr("none"));
  EXPECT_EQ(folder.code(), Code::invalid_argument);
  EXPECT_THAT(folder.message(), HasSubstr("it is a folder"));
}

TEST_F(Idx, UnpacksOnceAndReadsTheCacheThen) {
  const fs::path path = put("images.gz", gzipped(counting_images({2, 2, 3})));
  (void)open_idx(path);
  ASSERT_EQ(cached(), 1U);
  const fs::path entry = *fs::directory_iterator(folder_ / "cache" / "yoke" / "unpacked");

  // A sign that only the cache can have.
  std::string marked = core::read_file(entry);
  marked.back() = 'm';
  core::write_atomically(entry, marked);

  EXPECT_EQ(open_idx(path).integer(11), 'm');
  EXPECT_EQ(cached(), 1U);
}

TEST_F(Idx, UnpacksAnewWhenTheFileChangesOrTheCacheIsCutShort) {
  const fs::path path = put("images.gz", gzipped(counting_images({2, 2, 3})));
  (void)open_idx(path);
  const fs::path entry = *fs::directory_iterator(folder_ / "cache" / "yoke" / "unpacked");

  fs::resize_file(entry, 20);
  EXPECT_EQ(open_idx(path).integer(11), 11);
  put("images.gz", gzipped(counting_images({5, 2, 3})));
  EXPECT_EQ(open_idx(path).items(), 5);

  EXPECT_EQ(cached(), 2U);
}

TEST_F(Idx, BrokenGzipDataLeavesNothingInTheCache) {
  const fs::path path = put("images.gz", gzipped(counting_images({2, 2, 3})).substr(0, 20));

  EXPECT_THROW((void)open_idx(path), Error);

  EXPECT_EQ(cached(), 0U);
}

TEST_F(Idx, FallsBackToMemoryWithOneWarningWhereTheCacheCannotBeWritten) {
  // A file stands where the folder would be: nobody, not even root, can write there.
  const CacheElsewhere unwritable(put("blocked", "x"));
  const fs::path path = put("images.gz", gzipped(counting_images({2, 2, 3})));
  auto console = std::make_shared<core::RecordingConsole>();
  const auto before = core::attach(console);

  const IdxFile first = open_idx(path);
  const IdxFile second = open_idx(path);
  core::attach(before);

  EXPECT_EQ(first.integer(11), 11);
  EXPECT_EQ(second.integer(11), 11);
  ASSERT_EQ(console->lines().size(), 1U);
  EXPECT_THAT(console->lines().front(), AllOf(HasSubstr("kept in memory"), HasSubstr("blocked")));
}

TEST_F(Idx, SeveralProcessesOrThreadsMayUnpackAtOnce) {
  const fs::path path = put("images.gz", gzipped(counting_images({50, 4, 5})));
  std::vector<std::int64_t> last(4);

  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < last.size(); ++i) {
    threads.emplace_back([&, i] { last[i] = open_idx(path).integer(999); });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_THAT(last, ::testing::Each(999 % 256));
  EXPECT_EQ(cached(), 1U);
}

TEST_F(Idx, RefusesIntegersFromFractionsAndPositionsOutside) {
  std::string f32 = idx_header(IdxType::f32, {1});
  append_big_endian(f32, 0, 4);

  EXPECT_THROW((void)parse_idx(as_bytes(f32), "f").integer(0), Error);
  EXPECT_THROW((void)parse_idx(as_bytes(labels_file({1, 2})), "l").integer(2), Error);
  EXPECT_THROW((void)parse_idx(as_bytes(labels_file({1, 2})), "l").integer(-1), Error);
}

TEST_F(Idx, StaysWholeWhenItMoves) {
  IdxFile from = parse_idx(as_bytes(counting_images({2, 2, 3})), "a");

  const IdxFile to = std::move(from);

  EXPECT_EQ(to.integer(11), 11);
}

}  // namespace
}  // namespace yoke::feed
