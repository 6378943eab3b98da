#include "yoke/archive/pytorch.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::archive {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PytorchFile : public Scratch {
 protected:
  Value round_trip(const Value& value) {
    write_pytorch(folder_ / "m.pt", value);
    return read_pytorch(folder_ / "m.pt");
  }
};

const Tensor& tensor_at(const Value& value, std::string_view key) {
  return value.as<Dict>().at(key).as<Tensor>();
}

TEST_F(PytorchFile, AStateDictKeepsNamesOrderShapesAndBytes) {
  const auto weights = counting<float>(6);
  const auto steps = counting<std::int64_t>(1);
  const std::vector<NamedTensor> tensors{{"z.weight", borrow(Dtype::float32, {2, 3}, weights)},
                                         {"a.steps", borrow(Dtype::int64, {}, steps)},
                                         {"m.none", borrow(Dtype::bfloat16, {3, 0}, weights)}};

  const Value value = round_trip(state_dict(tensors));
  const std::vector<NamedTensor> read = named_tensors(value);

  EXPECT_TRUE(value.as<Dict>().ordered);
  ASSERT_EQ(read.size(), 3U);
  EXPECT_EQ(read[0].name, "z.weight");
  EXPECT_EQ(elements<float>(read[0].tensor), weights);
  EXPECT_EQ(read[1].name, "a.steps");
  EXPECT_EQ(read[1].tensor.shape, std::vector<std::int64_t>{});
  EXPECT_EQ(read[2].tensor.shape, (std::vector<std::int64_t>{3, 0}));
  EXPECT_EQ(read[2].tensor.dtype, Dtype::bfloat16);
}

TEST_F(PytorchFile, PlainDataOfEveryKindSurvives) {
  Dict dict;
  for (const std::int64_t number :
       {std::int64_t{0}, std::int64_t{255}, std::int64_t{256}, std::int64_t{65'536},
        std::int64_t{-1}, std::int64_t{1} << 31, -(std::int64_t{1} << 40), INT64_MIN, INT64_MAX}) {
    dict.set(number, number);
  }
  dict.set("none", Value());
  dict.set("flags", List{{true, false}});
  dict.set("lr", 0.1);
  dict.set("name", "Grüße");
  dict.set("betas", Tuple{{0.9, 0.999}});
  dict.set("groups", List{{Dict{{{"params", List{{0, 1, 2}}}}}}});
  dict.set("empty", List{{Dict{}, List{}, Tuple{}, ""}});

  const Value value = round_trip(dict);
  const Dict& read = value.as<Dict>();

  EXPECT_FALSE(read.ordered);
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(read.entries[i].key.as<std::int64_t>(), read.entries[i].value.as<std::int64_t>());
  }
  EXPECT_EQ(read.find(INT64_MIN)->as<std::int64_t>(), INT64_MIN);
  EXPECT_TRUE(read.at("none").is_none());
  EXPECT_TRUE(read.at("flags").items()[0].as<bool>());
  EXPECT_EQ(read.at("lr").number(), 0.1);
  EXPECT_EQ(read.at("name").as<std::string>(), "Grüße");
  EXPECT_EQ(read.at("betas").as<Tuple>().items[1].number(), 0.999);
  EXPECT_EQ(read.at("groups").items()[0].as<Dict>().at("params").items()[2].as<std::int64_t>(), 2);
  EXPECT_EQ(read.at("empty").items()[0].kind(), "dict");
}

TEST_F(PytorchFile, MoreNamesThanFitOneByteOfMemoSurvive) {
  Dict dict;
  for (int i = 0; i < 700; ++i)
    dict.set(core::text("key", i % 350, i < 350 ? "a" : "b"), core::text("value", i % 300));

  const Value value = round_trip(dict);

  ASSERT_EQ(value.as<Dict>().entries.size(), 700U);
  EXPECT_EQ(value.as<Dict>().at("key349b").as<std::string>(), "value99");  // 699 % 300
}

TEST_F(PytorchFile, TiedWeightsAndTheTransposeShareOneStorage) {
  const auto numbers = counting<float>(6);
  Tensor transposed = borrow(Dtype::float32, {3, 2}, numbers);
  transposed.strides = {1, 3};
  const Tensor weight = borrow(Dtype::float32, {2, 3}, numbers);

  const Value read = round_trip(
      state_dict(std::vector<NamedTensor>{{"w", weight}, {"tied", weight}, {"t", transposed}}));

  const std::byte* address = tensor_at(read, "w").storage.data();
  EXPECT_EQ(tensor_at(read, "tied").storage.data(), address);
  EXPECT_EQ(tensor_at(read, "t").storage.data(), address);
  EXPECT_THAT(elements<float>(tensor_at(read, "t")), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST_F(PytorchFile, TheSameBytesUnderTwoDtypesAreWrittenTwice) {
  const auto numbers = counting<std::int32_t>(2);

  const Value read = round_trip(state_dict(std::vector<NamedTensor>{
      {"i", borrow(Dtype::int32, {2}, numbers)}, {"b", borrow(Dtype::uint8, {8}, numbers)}}));

  EXPECT_NE(tensor_at(read, "i").storage.data(), tensor_at(read, "b").storage.data());
}

TEST_F(PytorchFile, B084ASliceOfAMillionElementsTakesItsOwnBytesOnly) {
  const auto numbers = counting<float>(1'000'000);
  Tensor slice = borrow(Dtype::float32, {1000}, numbers);
  slice.offset = 500;

  const Value read = round_trip(slice);

  EXPECT_LT(std::filesystem::file_size(folder_ / "m.pt"), 10'000U);
  EXPECT_EQ(elements<float>(read.as<Tensor>()).front(), 500);
  EXPECT_EQ(elements<float>(read.as<Tensor>()).back(), 1499);
}

TEST_F(PytorchFile, B084OverlappingSlicesAndATransposeComeBackRight) {
  const auto numbers = counting<float>(100);
  Tensor a = borrow(Dtype::float32, {10}, numbers);
  a.offset = 10;
  Tensor b = a;
  b.offset = 5;
  Tensor transposed = borrow(Dtype::float32, {3, 2}, numbers);
  transposed.strides = {1, 3};

  const Value read = round_trip(Dict{{{"a", a}, {"b", b}, {"t", transposed}}});

  EXPECT_EQ(elements<float>(tensor_at(read, "a"))[0], 10);
  EXPECT_EQ(elements<float>(tensor_at(read, "a"))[9], 19);
  EXPECT_EQ(elements<float>(tensor_at(read, "b"))[0], 5);
  EXPECT_EQ(elements<float>(tensor_at(read, "b"))[9], 14);
  EXPECT_THAT(elements<float>(tensor_at(read, "t")), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_EQ(tensor_at(read, "t").strides, (std::vector<std::int64_t>{1, 3}));
}

TEST_F(PytorchFile, AViewWithHolesIsWrittenWithoutThem) {
  const auto numbers = counting<float>(12);
  Tensor column = borrow(Dtype::float32, {3, 1}, numbers);
  column.strides = {4, 1};
  column.offset = 1;

  const Value read = round_trip(List{{column, column}});

  EXPECT_THAT(elements<float>(read.items()[0].as<Tensor>()), ElementsAre(1, 5, 9));
  EXPECT_EQ(read.items()[0].as<Tensor>().storage.size(), 12U);
  EXPECT_EQ(read.items()[1].as<Tensor>().storage.data(),
            read.items()[0].as<Tensor>().storage.data());
}

TEST_F(PytorchFile, PayloadsLieAtMultiplesOf64Bytes) {
  const auto numbers = counting<float>(5);
  const auto more = counting<float>(7);

  const Value read =
      round_trip(List{{borrow(Dtype::float32, {5}, numbers), borrow(Dtype::float32, {7}, more)}});

  // The file is mapped at a page, so addresses in memory tell offsets in the file.
  for (const Value& item : read.items()) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(item.as<Tensor>().storage.data()) % 64, 0U);
  }
}

TEST_F(PytorchFile, TheSameInputGivesTheSameBytesUnderAnyPath) {
  const auto numbers = counting<float>(5);
  const Value value = List{{borrow(Dtype::float32, {5}, numbers), "text", 3}};

  write_pytorch(folder_ / "a.pt", value);
  write_pytorch(folder_ / "other.pth", value);

  EXPECT_EQ(core::read_file(folder_ / "a.pt"), core::read_file(folder_ / "other.pth"));
}

TEST_F(PytorchFile, RequiresGradSurvives) {
  const auto numbers = counting<float>(1);
  Tensor tensor = borrow(Dtype::float32, {1}, numbers);
  tensor.requires_grad = true;

  EXPECT_TRUE(round_trip(tensor).as<Tensor>().requires_grad);
}

TEST_F(PytorchFile, WhatPythonCouldNotReadIsRefused) {
  const auto numbers = counting<float>(1);
  Tensor unsound = borrow(Dtype::float32, {1}, numbers);
  unsound.offset = 7;
  Value deep;
  for (int i = 0; i < 200; ++i) deep = List{{deep}};
  const auto refusal = [&](const Value& value) {
    const Error error = error_of([&] { write_pytorch(folder_ / "m.pt", value); });
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.message();
  };

  EXPECT_THAT(refusal("\xC3"), HasSubstr("not UTF-8"));
  EXPECT_THAT(refusal(Dict{{{List{}, 1}}}), HasSubstr("a list as key"));
  EXPECT_THAT(refusal(Dict{{{"a", 1}, {"a", 2}}}), HasSubstr("key \"a\" twice"));
  EXPECT_THAT(refusal(Dict{{{1, 1}, {2, 2}, {1, 3}}}), HasSubstr("int key twice"));
  EXPECT_THAT(refusal(unsound), HasSubstr("reaches element 8"));
  EXPECT_THAT(refusal(deep), HasSubstr("100 levels"));
  EXPECT_EQ(entries(), 0U);
}

TEST_F(PytorchFile, B078AFailedSaveKeepsTheOldFileAndNamesTheSizeNeeded) {
  write_pytorch(folder_ / "m.pt", "old");
  const auto numbers = counting<float>(500'000);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = before;
  limit.rlim_cur = 1'000'000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);

  const Error error = error_of(
      [&] { write_pytorch(folder_ / "m.pt", borrow(Dtype::float32, {500'000}, numbers)); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);

  EXPECT_EQ(error.code(), Code::io);
  EXPECT_THAT(error.message(),
              HasSubstr(core::text("save ", (folder_ / "m.pt").string(), ", 1.9 MiB: write")));
  EXPECT_EQ(read_pytorch(folder_ / "m.pt").as<std::string>(), "old");
  EXPECT_EQ(entries(), 1U);
}

/// A file system of 10 MB on the folder, in a mount name space of this process alone; false where
/// the system does not allow it.
bool mount_small_disk(const std::filesystem::path& folder) {
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  return ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=10m") == 0;
}

TEST_F(PytorchFile, B078AFullDiskKeepsTheGoodFileAndLeavesNothingElse) {
  if (!mount_small_disk(folder_)) GTEST_SKIP() << "no mount name space: " << std::strerror(errno);
  const auto good = counting<float>(1'500'000);   // 6 MB
  const auto large = counting<float>(5'000'000);  // 20 MB
  write_pytorch(folder_ / "m.pt", borrow(Dtype::float32, {1'500'000}, good));

  const Error error = error_of(
      [&] { write_pytorch(folder_ / "m.pt", borrow(Dtype::float32, {5'000'000}, large)); });
  const bool intact = elements<float>(read_pytorch(folder_ / "m.pt").as<Tensor>()) == good;
  const std::size_t files = entries();
  ASSERT_EQ(::umount2(folder_.c_str(), MNT_DETACH), 0);

  EXPECT_EQ(error.code(), Code::io);
  EXPECT_THAT(error.message(),
              HasSubstr(core::text("save ", (folder_ / "m.pt").string(), ", 19.1 MiB: write")));
  EXPECT_THAT(error.message(), HasSubstr("No space left on device"));
  EXPECT_TRUE(intact);
  EXPECT_EQ(files, 1U);
}

TEST_F(PytorchFile, B078AFileThatIsNoCheckpointIsNamedWithPathAndSize) {
  const auto numbers = counting<float>(1000);
  write_pytorch(folder_ / "whole.pt", borrow(Dtype::float32, {1000}, numbers));
  const std::string whole = core::read_file(folder_ / "whole.pt");
  const auto error_for = [&](const std::string& content) {
    core::write_atomically(folder_ / "bad.pt", content);
    const Error error = error_of([&] { (void)read_pytorch(folder_ / "bad.pt"); });
    EXPECT_EQ(error.code(), Code::corrupt_data);
    EXPECT_THAT(error.message(), HasSubstr(core::text("load ", (folder_ / "bad.pt").string(),
                                                      ": corrupt or truncated checkpoint of ",
                                                      content.size(), " B: ")));
    return std::string(error.what());
  };

  EXPECT_THAT(error_for(whole.substr(0, whole.size() / 2)),
              HasSubstr("the zip directory, which ends such a file, is missing"));
  EXPECT_THAT(error_for(""), HasSubstr("the file is empty"));
  EXPECT_THAT(error_for("<!DOCTYPE html><html><body>404</body></html>"), HasSubstr("web page"));
  EXPECT_THAT(error_for("version https://git-lfs.github.com/spec/v1\noid sha256:00"),
              HasSubstr("git lfs pull"));
}

TEST_F(PytorchFile, AMissingFileIsNotFound) {
  EXPECT_EQ(error_of([&] { (void)read_pytorch(folder_ / "none.pt"); }).code(), Code::not_found);
  EXPECT_EQ(error_of([&] { (void)read_pytorch(folder_); }).code(), Code::io);
}

TEST_F(PytorchFile, EveryTruncationIsAnError) {
  const auto numbers = counting<float>(3);
  write_pytorch(folder_ / "m.pt",
                state_dict(std::vector<NamedTensor>{{"a", borrow(Dtype::float32, {3}, numbers)}}));
  const std::string whole = core::read_file(folder_ / "m.pt");

  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string cut =
        whole.substr(0, length);  // a copy, so that a sanitizer sees a read beyond it
    const Error error = error_of([&] { (void)read_pytorch(as_bytes(cut), "m.pt"); });
    EXPECT_EQ(error.code(), Code::corrupt_data) << length;
  }
}

TEST_F(PytorchFile, EveryFlippedBitIsFoundOrChangesNothing) {
  const auto numbers = counting<float>(3);
  write_pytorch(folder_ / "m.pt",
                state_dict(std::vector<NamedTensor>{{"a", borrow(Dtype::float32, {3}, numbers)}}));
  std::string bytes = core::read_file(folder_ / "m.pt");
  std::size_t found = 0;

  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const auto flip = static_cast<char>(1 << bit % 8);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ flip);
    try {
      const std::vector<NamedTensor> read = named_tensors(read_pytorch(as_bytes(bytes), "m.pt"));
      // What is not read (padding, the records beside the tensors) may change; what is returned may
      // not.
      ASSERT_EQ(read.size(), 1U) << bit;
      ASSERT_EQ(read[0].name, "a") << bit;
      ASSERT_EQ(elements<float>(read[0].tensor), numbers) << bit;
    } catch (const Error&) {
      ++found;
    }
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ flip);
  }

  EXPECT_GT(found, 8 * (12U + 150U));  // all of the tensor's bytes and of the pickle
}

}  // namespace
}  // namespace yoke::archive
