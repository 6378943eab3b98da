#include <algorithm>
#include <cstdint>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../zip_reader.hpp"
#include "../zip_writer.hpp"
#include "scratch.hpp"
#include "yoke/core/files.hpp"

namespace yoke::archive {
namespace {

using ::testing::HasSubstr;

class Zip : public Scratch {
 protected:
  std::string zip_of(ZipWriterOptions options = {}) {
    core::AtomicFile file(folder_ / "z");
    ZipWriter zip(file, "top", options);
    zip.add("first", "hello");
    zip.add("empty", "");
    zip.begin("pieces", 6);
    zip.append(as_bytes(std::string("abc")));
    zip.append(as_bytes(std::string("def")));
    zip.end();
    zip.finish();
    file.commit();
    return core::read_file(folder_ / "z");
  }

  static std::string record(const std::string& bytes, std::string_view name) {
    const Source source{.bytes = as_bytes(bytes), .name = "z"};
    const auto found = ZipReader(source).record(name);
    return {reinterpret_cast<const char*>(found.data()), found.size()};
  }

  static Error error_in(const std::string& bytes) {
    return error_of([&] { (void)record(bytes, "top/first"); });
  }
};

/// Where the n-th mark "PK<kind>" stands.
std::size_t mark(const std::string& bytes, const std::string& kind, int n = 0) {
  std::size_t at = bytes.find("PK" + kind);
  while (n-- > 0) at = bytes.find("PK" + kind, at + 1);
  return at;
}

const std::string kLocal = "\3\4";
const std::string kCentral = "\1\2";
const std::string kEnd = "\5\6";
const std::string kEnd64 = "\6\6";

TEST_F(Zip, RecordsComeBackWhole) {
  const std::string bytes = zip_of();

  EXPECT_EQ(record(bytes, "top/first"), "hello");
  EXPECT_EQ(record(bytes, "top/empty"), "");
  EXPECT_EQ(record(bytes, "top/pieces"), "abcdef");
  EXPECT_EQ(bytes.find("hello") % 64, 0U);
  EXPECT_EQ(bytes.find("abcdef") % 64, 0U);
}

TEST_F(Zip, SixtyFourBitFieldsComeBackToo) {
  const std::string bytes = zip_of({.zip64_from = 4});

  EXPECT_EQ(record(bytes, "top/first"), "hello");
  EXPECT_EQ(record(bytes, "top/pieces"), "abcdef");
  EXPECT_EQ(bytes.find("abcdef") % 64, 0U);
  const std::size_t extra = 30 + std::string("top/first").size();  // behind the first local header
  EXPECT_EQ(bytes.substr(extra, 12), std::string("\1\0\x10\0\5\0\0\0\0\0\0\0", 12));
}

TEST_F(Zip, ARecordThatIsNotOfTheSizeAnnouncedIsOurOwnFault) {
  core::AtomicFile file(folder_ / "z");
  ZipWriter zip(file, "top");
  zip.begin("a", 2);
  zip.append(as_bytes(std::string("x")));

  EXPECT_EQ(error_of([&] { zip.end(); }).code(), Code::internal);
  EXPECT_EQ(error_of([&] { zip.append(as_bytes(std::string("yz"))); }).code(), Code::internal);
}

TEST_F(Zip, AFlippedBitInARecordIsFoundByItsChecksum) {
  std::string bytes = zip_of();
  bytes[bytes.find("hello")] = 'j';

  const Error error = error_in(bytes);

  EXPECT_EQ(error.code(), Code::corrupt_data);
  EXPECT_THAT(error.message(), HasSubstr("top/first of 5 B: its CRC-32 differs"));
}

TEST_F(Zip, AFileWithoutAnyChecksumIsReadWithoutThem) {
  std::string bytes = zip_of();
  for (int i = 0; i < 3; ++i) std::memset(&bytes[mark(bytes, kCentral, i) + 16], 0, 4);
  bytes[bytes.find("hello")] = 'j';

  EXPECT_EQ(record(bytes, "top/first"), "jello");
}

TEST_F(Zip, ACommentBehindTheEndIsAllowedAndAnotherTailIsNot) {
  std::string bytes = zip_of();

  EXPECT_EQ(error_in(bytes + "tail").code(), Code::corrupt_data);
  bytes[bytes.size() - 2] = 4;
  EXPECT_EQ(record(bytes + "tail", "top/first"), "hello");
}

TEST_F(Zip, CompressedAndEncryptedRecordsAreUnsupported) {
  std::string compressed = zip_of();
  compressed[mark(compressed, kCentral) + 10] = 8;
  std::string encrypted = zip_of();
  encrypted[mark(encrypted, kCentral) + 8] |= 1;

  EXPECT_THAT(error_in(compressed).message(), HasSubstr("is compressed (method 8)"));
  EXPECT_EQ(error_in(compressed).code(), Code::unsupported);
  EXPECT_THAT(error_in(encrypted).message(), HasSubstr("is encrypted"));
}

TEST_F(Zip, FieldsThatDoNotFitTogetherAreCorrupt) {
  const std::string good = zip_of();
  const auto changed = [&](std::size_t at, const std::string& to) {
    std::string bytes = good;
    bytes.replace(at, to.size(), to);
    return error_in(bytes).message();
  };
  const std::size_t central = mark(good, kCentral);
  const std::size_t end64 = mark(good, kEnd64);
  const std::string huge(8, '\x7F');

  EXPECT_THAT(changed(central + 20, "\7"), HasSubstr("two sizes"));
  EXPECT_THAT(changed(central + 20, huge), HasSubstr("end behind the records"));
  EXPECT_THAT(changed(central + 42, "\1"), HasSubstr("no header at byte 1"));
  EXPECT_THAT(changed(central + 42, huge.substr(4)), HasSubstr("no header at byte"));
  EXPECT_THAT(changed(mark(good, kLocal) + 30, "T"), HasSubstr("another header at byte 0"));
  EXPECT_THAT(changed(central + 46, "\xFF"), HasSubstr("not UTF-8"));
  EXPECT_THAT(changed(central, "Q"), HasSubstr("record 1 of 3: no header"));
  EXPECT_THAT(changed(end64 + 32, huge), HasSubstr("does not fit"));
  EXPECT_THAT(changed(end64 + 40, huge), HasSubstr("does not fit"));
  EXPECT_THAT(changed(end64 + 48, huge), HasSubstr("does not fit"));
  EXPECT_THAT(changed(end64, "Q"), HasSubstr("no 64-bit zip end record"));
}

TEST_F(Zip, TwoRecordsCannotShareBytesOrAName) {
  const std::string good = zip_of();
  std::string overlapping = good;
  const std::uint32_t size = 100;  // reaches into the next record
  for (const std::size_t field : {20U, 24U})
    std::memcpy(&overlapping[mark(good, kCentral) + field], &size, 4);
  std::string twice =
      good;  // the third entry becomes a copy of the first, whose name is one letter shorter
  const std::string first = good.substr(mark(good, kCentral), 46 + 9);
  twice.replace(mark(good, kCentral, 1), first.size(), first);

  EXPECT_THAT(error_in(overlapping).message(), HasSubstr("two zip records share bytes"));
  EXPECT_THAT(error_in(twice).message(), HasSubstr("its name is there twice"));
}

}  // namespace
}  // namespace yoke::archive
