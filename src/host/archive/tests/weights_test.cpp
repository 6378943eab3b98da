#include "yoke/archive/weights.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include <gmock/gmock.h>

#include "scratch.hpp"
#include "yoke/archive/pytorch.hpp"
#include "yoke/archive/safetensors.hpp"
#include "yoke/archive/sealed_folder.hpp"
#include "yoke/core/error.hpp"

namespace yoke::archive {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <class T>
NamedTensor named(const std::string& name, Dtype dtype, const std::vector<T>& values) {
  auto owner = std::make_shared<const std::vector<T>>(values);
  return {name, contiguous_tensor(dtype, {static_cast<std::int64_t>(values.size())},
                                  std::as_bytes(std::span(*owner)), owner)};
}

NamedTensor floats(const std::string& name, const std::vector<float>& values) {
  return named(name, Dtype::float32, values);
}

template <class T>
std::vector<T> values_of(const Tensor& tensor) {
  const std::vector<std::byte> bytes = row_major_bytes(tensor);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<std::string> names_of(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> names;
  for (const NamedTensor& tensor : tensors) names.push_back(tensor.name);
  return names;
}

std::vector<NamedTensor> named_as(const std::vector<std::string>& names) {
  std::vector<NamedTensor> tensors;
  for (const std::string& name : names) tensors.push_back(floats(name, {1}));
  return tensors;
}

class WeightsTest : public Scratch {};

TEST_F(WeightsTest, EveryFormatIsTakenForWhatItIs) {
  const std::vector<NamedTensor> tensors{floats("w", {1, 2})};
  write_safetensors(folder_ / "a.safetensors", tensors);
  write_pytorch(folder_ / "b.pt", state_dict(tensors));
  Dict lightning;
  lightning.set("epoch", 3);
  lightning.set("state_dict", state_dict(tensors));
  lightning.set("pytorch-lightning_version", "2.5.0");
  write_pytorch(folder_ / "c.ckpt", lightning);
  {
    UnsealedFolder next(folder_ / "run" / "checkpoints" / "step-000000000007");
    write_safetensors(next.path() / "model.safetensors", tensors);
    next.seal({{"step", 7}});
  }

  EXPECT_EQ(read_weights(folder_ / "a.safetensors").format, "safetensors");
  EXPECT_EQ(read_weights(folder_ / "b.pt").format, "state_dict of PyTorch");
  const Weights checkpoint = read_weights(folder_ / "c.ckpt");
  EXPECT_EQ(checkpoint.format, "checkpoint of Lightning");
  EXPECT_THAT(checkpoint.notes,
              ElementsAre("taken: state_dict; left: epoch, pytorch-lightning_version"));
  const Weights run = read_weights(folder_ / "run");
  EXPECT_EQ(run.format, "checkpoint of Yoke");
  EXPECT_THAT(values_of<float>(run.tensors.at(0).tensor), ElementsAre(1.0F, 2.0F));
}

TEST_F(WeightsTest, WhatHoldsNoWeightsIsNamed) {
  write_pytorch(folder_ / "a.pt", Dict{});

  for (const auto& [path, part] : {std::pair{folder_ / "a.pt", "no state_dict"},
                                   std::pair{folder_, "no weights in this folder"}}) {
    try {
      (void)read_weights(path);
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), HasSubstr(part));
    }
  }
}

TEST(StripPrefixes, AsOftenAsEveryNameHasThem) {
  auto twice = named_as({"module.module.conv.weight", "module.module.fc.bias"});
  EXPECT_THAT(strip_prefixes(twice), ElementsAre("module.", "module."));
  EXPECT_THAT(names_of(twice), ElementsAre("conv.weight", "fc.bias"));

  auto mixed = named_as({"model._orig_mod.layer1._orig_mod.weight", "model._orig_mod.fc.bias"});
  EXPECT_THAT(strip_prefixes(mixed), ElementsAre("_orig_mod.", "model."));
  EXPECT_THAT(names_of(mixed), ElementsAre("layer1.weight", "fc.bias"));

  auto partly = named_as({"module.weight", "head.weight"});
  EXPECT_THAT(strip_prefixes(partly), IsEmpty());
  EXPECT_THAT(names_of(partly), ElementsAre("module.weight", "head.weight"));
}

TEST(StripPrefixes, TwoNamesThatBecomeOneAreRefused) {
  auto tensors = named_as({"_orig_mod.weight", "weight"});

  EXPECT_THROW(strip_prefixes(tensors), Error);
}

TEST(Average, IsTheMeanAndOfIntegersTheLast) {
  const std::vector<Weights> states{
      {.tensors = {floats("w", {1, 4}), named<std::int64_t>("n", Dtype::int64, {5})}},
      {.tensors = {floats("w", {2, 8}), named<std::int64_t>("n", Dtype::int64, {7})}}};

  const std::vector<NamedTensor> mean = average(states);

  EXPECT_THAT(names_of(mean), ElementsAre("w", "n"));
  EXPECT_THAT(values_of<float>(mean[0].tensor), ElementsAre(1.5F, 6.0F));
  EXPECT_THAT(values_of<std::int64_t>(mean[1].tensor), ElementsAre(7));
}

// Every number of 16 bits is its own mean; what lies between two goes to the nearer.
TEST(Average, HalfAndBrainNumbersKeepTheirBits) {
  for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16}) {
    std::vector<std::uint16_t> all;
    const int exponent = dtype == Dtype::float16 ? 0x7C00 : 0x7F80;
    for (int bits = 0; bits < 0x10000; ++bits) {
      if ((bits & exponent) == exponent && (bits & (0x7FFF ^ exponent)) != 0) continue;  // NaN
      all.push_back(static_cast<std::uint16_t>(bits));
    }
    const std::vector<Weights> one{{.tensors = {named("w", dtype, all)}}};
    EXPECT_EQ(values_of<std::uint16_t>(average(one)[0].tensor), all) << name(dtype);
  }
  const std::vector<Weights> ones{
      {.tensors = {named<std::uint16_t>("w", Dtype::float16, {0x3C00})}},
      {.tensors = {named<std::uint16_t>("w", Dtype::float16, {0x3C01})}}};
  EXPECT_THAT(values_of<std::uint16_t>(average(ones)[0].tensor), ElementsAre(0x3C00));  // tie: even
}

TEST(Average, WhatDiffersIsNamed) {
  const std::vector<Weights> states{{.tensors = {floats("w", {1, 4})}},
                                    {.tensors = {floats("w", {1})}}};
  try {
    (void)average(states);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("w is float32 [2]"));
  }
}

}  // namespace
}  // namespace yoke::archive
