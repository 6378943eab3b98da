#include <cstdint>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../pickle_reader.hpp"
#include "scratch.hpp"
#include "yoke/core/text.hpp"

namespace yoke::archive {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;

const std::string kStorageRecord(12, '\1');

/// The value of a pickle whose storages all hold 12 bytes.
Value value_of(const std::string& pickle) {
  const Source source{.bytes = as_bytes(pickle), .name = "m.pt"};
  return read_pickle(source, source.bytes,
                     [](std::string_view) { return as_bytes(kStorageRecord); });
}

Error error_in(const std::string& pickle) {
  return error_of([&] { (void)value_of(pickle); });
}

std::string unicode(const std::string& text) {
  return "X"s + static_cast<char>(text.size()) + "\0\0\0"s + text;
}

std::string storage(const std::string& kind, int elements) {
  return "(" + unicode("storage") + "ctorch\n" + kind + "\n" + unicode("0") + unicode("cpu") + "K" +
         static_cast<char>(elements) + "tQ";
}

/// A float tensor of shape [3] over a storage of 3, with that offset, size and stride.
std::string tensor(const std::string& offset, const std::string& size, const std::string& stride) {
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage("FloatStorage", 3) + offset + size +
         stride +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}

TEST(Pickle, NumbersOfEveryWidthAreRead) {
  EXPECT_EQ(value_of("\x80\2K\xFF.").as<std::int64_t>(), 255);
  EXPECT_EQ(value_of("\x80\2M\0\1."s).as<std::int64_t>(), 256);
  EXPECT_EQ(value_of("\x80\2J\xFE\xFF\xFF\xFF.").as<std::int64_t>(), -2);
  EXPECT_EQ(value_of("\x80\2\x8A\0."s).as<std::int64_t>(), 0);
  EXPECT_EQ(value_of("\x80\2\x8A\1\xFF."s).as<std::int64_t>(), -1);
  EXPECT_EQ(value_of("\x80\2\x8A\5\0\0\0\x80\0."s).as<std::int64_t>(), std::int64_t{1} << 31);
  EXPECT_EQ(value_of("\x80\2\x8A\6\0\0\0\0\0\xFF."s).as<std::int64_t>(), -(std::int64_t{1} << 40));
  EXPECT_EQ(value_of("\x80\2G\x3F\xF8\0\0\0\0\0\0."s).number(), 1.5);
}

TEST(Pickle, AnIntegerBeyond64BitsIsUnsupported) {
  const Error error = error_in("\x80\2\x8A\x09\0\0\0\0\0\0\0\0\1."s);

  EXPECT_EQ(error.code(), Code::unsupported);
  EXPECT_THAT(error.message(), HasSubstr("an integer of 72 bits"));
}

TEST(Pickle, B085AnUnknownGlobalIsRefusedByModuleAndClassAndNothingRuns) {
  const Error error = error_in(
      "\x80\2"
      "cos\nsystem\nX\4\0\0\0exit\x85R."s);

  EXPECT_EQ(error.code(), Code::unsupported);
  EXPECT_THAT(error.message(), HasSubstr("Python's `os.system`"));
  EXPECT_THAT(error.message(), HasSubstr("m.pt"));
}

TEST(Pickle, B081AnUnknownClassIsNamed) {
  EXPECT_THAT(error_in("\x80\2"
                       "c__main__\nNet\n)\x81."s)
                  .message(),
              HasSubstr("`__main__.Net`"));
  EXPECT_THAT(error_in("\x80\2"
                       "cnumpy._core.multiarray\nscalar\n."s)
                  .message(),
              HasSubstr("`numpy._core.multiarray.scalar`"));
}

TEST(Pickle, ADtypeBecomesItsNameAndADeviceToo) {
  EXPECT_EQ(value_of("\x80\2"
                     "ctorch\nbfloat16\n."s)
                .as<std::string>(),
            "torch.bfloat16");
  EXPECT_EQ(value_of("\x80\2"
                     "ctorch\ndevice\n" +
                     unicode("cuda") + "K\1\x86R.")
                .as<std::string>(),
            "cuda:1");
}

TEST(Pickle, ATensorStaysWithinItsStorage) {
  EXPECT_EQ(numel(value_of("\x80\2" + tensor("K\0"s, "K\3\x85", "K\1\x85") + ".").as<Tensor>()), 3);
  EXPECT_THAT(error_in("\x80\2" + tensor("K\1", "K\3\x85", "K\1\x85") + ".").message(),
              HasSubstr("reaches element 4 of a storage of 3"));
  EXPECT_THAT(error_in("\x80\2" + tensor("K\0"s, "K\2\x85", "K\3\x85") + ".").message(),
              HasSubstr("reaches element 4"));
  EXPECT_THAT(
      error_in("\x80\2" + tensor("J\xFF\xFF\xFF\xFF", "K\3\x85", "K\1\x85") + ".").message(),
      HasSubstr("offset -1"));
  EXPECT_THAT(error_in("\x80\2" + tensor("K\0"s, "K\3\x85", ")") + ".").message(),
              HasSubstr("1 sizes with 0 strides"));
}

TEST(Pickle, AStorageMustHaveTheSizeOfItsRecord) {
  EXPECT_THAT(error_in("\x80\2" + storage("FloatStorage", 4) + ".").message(),
              HasSubstr("4 elements of 4 B, its record has 12 B"));
  EXPECT_THAT(error_in("\x80\2" + storage("DoubleStorage", 1) + ".").message(),
              HasSubstr("its record has 12 B"));
}

TEST(Pickle, ADtypeThatYokeLacksIsNamed) {
  const Error error = error_in("\x80\2" + storage("ComplexFloatStorage", 1) + ".");

  EXPECT_EQ(error.code(), Code::unsupported);
  EXPECT_THAT(error.message(), HasSubstr("ComplexFloatStorage"));
}

TEST(Pickle, AListWithinItselfIsRefused) {
  EXPECT_THAT(error_in("\x80\2]q\0h\0a."s).message(), HasSubstr("within itself"));
}

TEST(Pickle, ASmallPickleCannotNameMoreMemoryThanACheckpointNeeds) {
  std::string doubling = "\x80\2]q\0"s;  // 60 lists, each of which holds the one before twice
  for (char i = 1; i <= 60; ++i)
    doubling += "](h"s + static_cast<char>(i - 1) + "h" + static_cast<char>(i - 1) + "eq" + i;

  EXPECT_THAT(error_in(doubling + ".").message(), HasSubstr("repeats itself"));
}

TEST(Pickle, ALongTextNamedOftenIsRefused) {
  std::string repeated = "\x80\2X\0\0\1\0"s + std::string(65'536, 'x') + "q\0("s;
  for (int i = 0; i < 100'000; ++i) repeated += "h\0"s;

  EXPECT_THAT(error_in(repeated + "t.").message(), HasSubstr("repeats itself"));
}

TEST(Pickle, SharedObjectsOfOrdinarySizeAreCopied) {
  const Value value = value_of("\x80\2](K\1K\2\x86q\0h\0h\0e."s);

  ASSERT_EQ(value.items().size(), 3U);
  EXPECT_EQ(value.items()[2].items()[1].as<std::int64_t>(), 2);
}

TEST(Pickle, OpcodesThatDoNotFitTogetherAreCorrupt) {
  for (const std::string& pickle : {"."s,
                                    "a."s,
                                    "\x85."s,
                                    "t."s,
                                    "(."s,
                                    "NN\x81."s,
                                    "]Ka"s,
                                    "}(Ks"s,
                                    "}(NNNu."s,
                                    "]}s."s,
                                    "h\7."s,
                                    "q\0."s,
                                    "NQ."s,
                                    "Nb."s,
                                    "]Nb."s,
                                    "(K\1]K\2a"s,
                                    "X\xFF\xFF\xFF\xFF."s,
                                    "cmodule"s,
                                    "cmodule\nname"s,
                                    "G\0"s,
                                    "\x8A\x08."s,
                                    "K\1(R."s,
                                    "]K\1K\2s."s,
                                    "}K\1a."s,
                                    "ctorch\nSize\n)R."s,
                                    "ctorch\nSize\n}\x85R."s,
                                    "ctorch\nfloat32\n)R."s,
                                    ""s}) {
    EXPECT_EQ(error_in("\x80\2" + pickle).code(), Code::corrupt_data)
        << ::testing::PrintToString(pickle);
  }
}

TEST(Pickle, OtherProtocolsAndOpcodesAreUnsupported) {
  EXPECT_THAT(error_in("\x80\4\x95\0"s).message(), HasSubstr("pickle protocol 4"));
  EXPECT_THAT(error_in("\x80\2I1\n."s).message(), HasSubstr("pickle opcode 73"));
  EXPECT_EQ(error_in("\x80\2"
                     "ctorch\nFloatStorage\n."s)
                .code(),
            Code::unsupported);
}

TEST(Pickle, AKeyThatIsThereTwiceIsCorrupt) {
  EXPECT_THAT(error_in("\x80\2}(" + unicode("a") + "K\1" + unicode("a") + "K\2u.").message(),
              HasSubstr("key \"a\" twice"));
}

}  // namespace
}  // namespace yoke::archive
