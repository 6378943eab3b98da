#include "yoke/archive/safetensors.hpp"

#include <cstdint>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch.hpp"
#include "yoke/core/files.hpp"

namespace yoke::archive {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SafetensorsFile : public Scratch {};

/// A file of that header, length in front, and `data` behind.
std::string file_with(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

Error error_of_header(const std::string& header, const std::string& data) {
  const std::string bytes = file_with(header, data);
  return error_of([&] { (void)read_safetensors(as_bytes(bytes), "m.safetensors"); });
}

TEST_F(SafetensorsFile, WhatIsWrittenIsReadBack) {
  const auto weights = counting<float>(6);
  const auto flags = counting<std::uint8_t>(3);
  const auto steps = counting<std::int64_t>(1);
  const std::vector<NamedTensor> tensors{{"flags", borrow(Dtype::uint8, {3}, flags)},
                                         {"weight", borrow(Dtype::float32, {2, 3}, weights)},
                                         {"steps", borrow(Dtype::int64, {}, steps)},
                                         {"nothing", borrow(Dtype::bfloat16, {0, 4}, flags)}};

  write_safetensors(folder_ / "m.safetensors", tensors, {{"format", "pt"}});
  const Safetensors read = read_safetensors(folder_ / "m.safetensors");

  ASSERT_EQ(read.tensors.size(), 4U);
  EXPECT_EQ(read.tensors[0].name, "steps");  // wide elements first, so that none lies misaligned
  EXPECT_EQ(read.tensors[1].name, "weight");
  EXPECT_EQ(read.tensors[1].tensor.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(elements<float>(read.tensors[1].tensor), weights);
  EXPECT_EQ(read.tensors[2].name, "nothing");
  EXPECT_EQ(read.tensors[2].tensor.dtype, Dtype::bfloat16);
  EXPECT_EQ(elements<std::uint8_t>(read.tensors[3].tensor), flags);
  EXPECT_EQ(read.metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
}

TEST_F(SafetensorsFile, TheLayoutIsTheOneThatTheFormatAsksFor) {
  const auto numbers = counting<std::int16_t>(2);

  write_safetensors(folder_ / "m",
                    std::vector<NamedTensor>{{"a", borrow(Dtype::int16, {2}, numbers)}});
  const std::string bytes = core::read_file(folder_ / "m");

  const std::string header = R"({"a":{"dtype":"I16","shape":[2],"data_offsets":[0,4]}})";
  EXPECT_EQ(bytes, file_with(header + std::string((8 - header.size() % 8) % 8, ' '),
                             std::string("\0\0\1\0", 4)));
}

TEST_F(SafetensorsFile, AViewIsWrittenRowMajorAndASharedStorageTwice) {
  const auto numbers = counting<std::int32_t>(6);
  Tensor transposed = borrow(Dtype::int32, {3, 2}, numbers);
  transposed.strides = {1, 3};

  write_safetensors(
      folder_ / "m",
      std::vector<NamedTensor>{{"a", borrow(Dtype::int32, {2, 3}, numbers)}, {"t", transposed}});
  const Safetensors read = read_safetensors(folder_ / "m");

  EXPECT_THAT(elements<std::int32_t>(read.tensors[0].tensor), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(elements<std::int32_t>(read.tensors[1].tensor), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST_F(SafetensorsFile, NoTensorsAreAFileToo) {
  write_safetensors(folder_ / "m", {});

  EXPECT_TRUE(read_safetensors(folder_ / "m").tensors.empty());
}

TEST_F(SafetensorsFile, NamesThatCannotStandAreRefusedBeforeTheFileIsTouched) {
  const auto numbers = counting<float>(1);
  const Tensor tensor = borrow(Dtype::float32, {1}, numbers);
  core::write_atomically(folder_ / "m", "old");
  const auto refusal = [&](const std::vector<NamedTensor>& tensors) {
    return error_of([&] { write_safetensors(folder_ / "m", tensors); }).message();
  };

  EXPECT_THAT(refusal({{"a", tensor}, {"a", tensor}}), HasSubstr("two tensors have this name"));
  EXPECT_THAT(refusal({{"__metadata__", tensor}}), HasSubstr("keeps this name"));
  EXPECT_THAT(refusal({{"\xFF", tensor}}), HasSubstr("not UTF-8"));
  EXPECT_EQ(core::read_file(folder_ / "m"), "old");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(SafetensorsFile, AMisalignedTensorOfAnotherWriterIsReadRight) {
  const std::string header =
      R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"f":{"dtype":"I32","shape":[1],"data_offsets":[1,5]}})";
  core::write_atomically(folder_ / "m", file_with(header, std::string("\7\1\2\0\0", 5)));

  const Safetensors read = read_safetensors(folder_ / "m");

  const Tensor& tensor = read.tensors[1].tensor;
  EXPECT_THAT(elements<std::int32_t>(tensor), ElementsAre(0x201));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.storage.data()) % 4, 0U);
}

TEST(SafetensorsHeader, WhatIsNotSoundIsNamed) {
  const std::string four(4, 'x');
  const auto message = [&](const std::string& header) {
    return error_of_header(header, four).message();
  };

  EXPECT_THAT(message(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})"),
              HasSubstr("end at 8 of a buffer of 4 B"));
  EXPECT_THAT(message(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})"),
              HasSubstr("takes 8 B, its data_offsets 4 B"));
  EXPECT_THAT(
      message(
          R"({"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]},"b":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}})"),
      HasSubstr("inside those"));
  EXPECT_THAT(message(R"({"a":{"dtype":"F16","shape":[1],"data_offsets":[2,4]}})"),
              HasSubstr("a hole"));
  EXPECT_THAT(message(R"({"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}})"),
              HasSubstr("end at 2 of a buffer of 4 B"));
  EXPECT_THAT(
      message(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}})"),
      HasSubstr("more than 2^63 B"));
  EXPECT_THAT(message(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})"),
              HasSubstr("whole number"));
  EXPECT_THAT(message(R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})"),
              HasSubstr("whole number"));
  EXPECT_THAT(message(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})"),
              HasSubstr("no range"));
  EXPECT_THAT(
      message(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})"),
      HasSubstr("holds \"a\" twice"));
  EXPECT_THAT(message(R"({"a":{"shape":[1],"data_offsets":[0,4]}})"),
              HasSubstr("no text \"dtype\""));
  EXPECT_THAT(message(R"({"a":7})"), HasSubstr("no JSON object"));
  EXPECT_THAT(message(R"({"__metadata__":{"a":1}})"), HasSubstr("\"a\" is no text"));
  EXPECT_THAT(message("[]"), HasSubstr("no JSON object"));
  EXPECT_THAT(message("{"), HasSubstr("no JSON"));
}

TEST(SafetensorsHeader, AnUnknownDtypeIsUnsupportedByName) {
  const Error error =
      error_of_header(R"({"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", "x");

  EXPECT_EQ(error.code(), Code::unsupported);
  EXPECT_THAT(error.message(), HasSubstr("F8_E4M3"));
}

TEST(SafetensorsHeader, ALengthBeyondTheFileIsRefusedWithoutMemoryForIt) {
  std::string bytes = file_with("{}", "");
  bytes[7] = '\x7F';

  const Error error = error_of([&] { (void)read_safetensors(as_bytes(bytes), "m.safetensors"); });

  EXPECT_EQ(error.code(), Code::corrupt_data);
  EXPECT_THAT(error.message(), HasSubstr("m.safetensors"));
}

TEST_F(SafetensorsFile, EveryTruncationIsAnError) {
  const auto numbers = counting<float>(6);
  write_safetensors(folder_ / "m",
                    std::vector<NamedTensor>{{"a", borrow(Dtype::float32, {2, 3}, numbers)}});
  const std::string whole = core::read_file(folder_ / "m");

  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string cut =
        whole.substr(0, length);  // a copy, so that a sanitizer sees a read beyond it
    const Error error = error_of([&] { (void)read_safetensors(as_bytes(cut), "m"); });
    EXPECT_EQ(error.code(), Code::corrupt_data) << length;
  }
}

}  // namespace
}  // namespace yoke::archive
