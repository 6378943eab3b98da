#include "yoke/checkpoint/files.hpp"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch.hpp"
#include "yoke/archive/pytorch.hpp"
#include "yoke/core/files.hpp"

namespace yoke::checkpoint {
namespace {

using archive::Dict;
using archive::List;
using archive::Value;
using ::testing::HasSubstr;

/// One suite for both formats.
class StateDictFile : public Scratch, public ::testing::WithParamInterface<const char*> {
 protected:
  [[nodiscard]] std::filesystem::path path() const {
    return folder_ / (std::string("model") + GetParam());
  }

  StateDict round_trip(const StateDict& state) {
    save_state_dict(path(), state);
    return load_state_dict(path());
  }
};

INSTANTIATE_TEST_SUITE_P(Formats, StateDictFile, ::testing::Values(".pt", ".pth", ".safetensors"));

TEST_P(StateDictFile, AModuleComesBackToTheSameBits) {
  Net from;
  Net to;
  fill_counting(from);

  load_into(to, round_trip(state_dict(from)));

  for (const auto& [name, tensor] : state_dict(from))
    EXPECT_TRUE(at::equal(tensor, tensor_of(state_dict(to), name))) << name;
}

TEST_P(StateDictFile, EveryDtypeShapeAndViewComesBack) {
  const at::Tensor numbers = torch::arange(24, at::kFloat).reshape({2, 3, 4});
  StateDict state;
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong,
                                    at::kInt, at::kShort, at::kChar, at::kByte, at::kBool}) {
    state.emplace_back(c10::toString(type), numbers.to(type));
  }
  state.emplace_back("scalar", torch::tensor(7));
  state.emplace_back("empty", torch::empty({0, 3}));
  state.emplace_back("transposed", numbers.permute({2, 0, 1}));
  state.emplace_back("columns", numbers.slice(2, 0, 4, 2));
  state.emplace_back("channels_last",
                     torch::randn({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast));
  state.emplace_back("expanded", torch::arange(3).expand({2, 3}));

  const StateDict read = round_trip(state);

  ASSERT_EQ(read.size(), state.size());
  for (const auto& [name, tensor] : state) {
    const at::Tensor& back = tensor_of(read, name);
    EXPECT_EQ(back.scalar_type(), tensor.scalar_type()) << name;
    EXPECT_EQ(back.sizes(), tensor.sizes()) << name;
    EXPECT_TRUE(at::equal(back, tensor)) << name;
  }
}

TEST_P(StateDictFile, ALoadedTensorMayBeWrittenAndTheFileStays) {
  StateDict read = round_trip({{"a", torch::zeros({3})}});

  read[0].second.fill_(7);

  EXPECT_TRUE(at::equal(load_state_dict(path())[0].second, torch::zeros({3})));
}

TEST_P(StateDictFile, AFileReplacedWhileLoadedKeepsWhatWasLoaded) {
  const StateDict read = round_trip({{"a", torch::zeros({100'000})}});

  save_state_dict(path(), {{"a", torch::ones({5})}});

  EXPECT_EQ(read[0].second.sum().item<float>(), 0);
}

TEST_P(StateDictFile, B078WhatIsNoCheckpointSaysSoWithPathAndSize) {
  save_state_dict(path(), {{"a", torch::zeros({1000})}});
  const std::string whole = core::read_file(path());

  for (const std::string& content : {std::string(), std::string("<!DOCTYPE html><html></html>"),
                                     whole.substr(0, whole.size() / 2)}) {
    core::write_atomically(path(), content);
    const Error error = error_of([&] { (void)load_state_dict(path()); });
    EXPECT_EQ(error.code(), Code::corrupt_data);
    EXPECT_THAT(error.message(),
                HasSubstr(path().string() + ": corrupt or truncated checkpoint of " +
                          std::to_string(content.size()) + " B"));
  }
}

TEST_P(StateDictFile, WhatCannotBeSavedIsNamedAndTheOldFileStays) {
  save_state_dict(path(), {{"a", torch::ones({1})}});

  const Error undefined = error_of([&] { save_state_dict(path(), {{"grad", at::Tensor()}}); });
  const Error complex =
      error_of([&] { save_state_dict(path(), {{"c", torch::ones({1}, at::kComplexFloat)}}); });
  const Error sparse =
      error_of([&] { save_state_dict(path(), {{"s", torch::eye(2).to_sparse()}}); });

  EXPECT_THAT(undefined.message(), HasSubstr("\"grad\": save a tensor: it is undefined"));
  EXPECT_THAT(complex.message(), HasSubstr("ComplexFloat"));
  EXPECT_EQ(sparse.code(), Code::unsupported);
  EXPECT_EQ(names(load_state_dict(path())), std::vector<std::string>{"a"});
}

class ValueFile : public Scratch {};

TEST_F(ValueFile, ASnapshotKeepsItsValuesAndWhatIsTied) {
  at::Tensor weight = torch::arange(6, at::kFloat).reshape({2, 3});
  const at::Tensor expected = weight.clone();
  ToArchive to_archive({.snapshot = true});
  const Value value =
      List{{to_archive(weight), to_archive(weight.t()), to_archive(weight.slice(1, 0, 3, 2)),
            to_archive(weight[1]), to_archive(weight.slice(0, 2, 2))}};

  weight.fill_(-1);
  save_value(folder_ / "v.pt", value);

  const Value read = load_value(folder_ / "v.pt");
  const auto& items = read.items();
  FromArchive from_archive;
  const auto loaded = [&](std::size_t i) { return from_archive(items[i].as<archive::Tensor>()); };
  EXPECT_TRUE(at::equal(loaded(0), expected));
  EXPECT_TRUE(at::equal(loaded(1), expected.t()));
  EXPECT_EQ(loaded(1).data_ptr(), loaded(0).data_ptr());
  EXPECT_TRUE(at::equal(loaded(2), expected.slice(1, 0, 3, 2)));
  EXPECT_TRUE(at::equal(loaded(3), expected[1]));
  EXPECT_EQ(loaded(4).sizes(), (std::vector<std::int64_t>{0, 3}));
}

TEST_F(ValueFile, AnEndThatTellsNoFormatIsRefused) {
  const Error error = error_of([&] { save_state_dict(folder_ / "model.bin", {}); });

  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_THAT(error.hint(), HasSubstr(".safetensors"));
}

TEST_F(ValueFile, TiedWeightsAreStillTiedOnceLoaded) {
  save_state_dict(folder_ / "m.pt", state_dict(Net()));

  const StateDict read = load_state_dict(folder_ / "m.pt");

  EXPECT_EQ(tensor_of(read, "first.weight").data_ptr(), tensor_of(read, "last.weight").data_ptr());
  EXPECT_EQ(names(read), names(state_dict(Net())));
}

TEST_F(ValueFile, AnOptimizersStateComesBack) {
  const at::Tensor momentum = torch::randn({2, 3});
  ToArchive to_archive;
  const Value value =
      Dict{{{"state", Dict{{{0, Dict{{{"momentum_buffer", to_archive(momentum)}}}}}}},
            {"param_groups", List{{Dict{{{"lr", 0.1}, {"params", List{{0}}}}}}}}}};

  save_value(folder_ / "optimizer.pt", value);
  const Value read = load_value(folder_ / "optimizer.pt");

  FromArchive from_archive;
  const Dict& state = read.as<Dict>().at("state").as<Dict>();
  EXPECT_TRUE(
      at::equal(from_archive(state.find(0)->as<Dict>().at("momentum_buffer").as<archive::Tensor>()),
                momentum));
  EXPECT_EQ(read.as<Dict>().at("param_groups").items()[0].as<Dict>().at("lr").number(), 0.1);
}

TEST_F(ValueFile, AStateDictIsFoundInsideATrainingCheckpoint) {
  ToArchive to_archive;
  const std::vector<archive::NamedTensor> model{{"a", to_archive(torch::ones({2}))}};
  save_value(folder_ / "run.pt", Dict{{{"model", archive::state_dict(model)}, {"epoch", 3}}});
  save_value(folder_ / "other.pt", Dict{{{"net", archive::state_dict(model)}}});

  EXPECT_EQ(names(load_state_dict(folder_ / "run.pt")), std::vector<std::string>{"a"});
  EXPECT_THAT(error_of([&] { (void)load_state_dict(folder_ / "other.pt"); }).message(),
              HasSubstr("other.pt: not a state_dict: entry \"net\" holds a dict"));
}

TEST_F(ValueFile, RequiresGradComesBackForFloatsOnly) {
  ToArchive to_archive;
  const at::Tensor leaf = torch::ones({2}, at::requires_grad());

  save_value(folder_ / "v.pt", to_archive(leaf));

  EXPECT_TRUE(FromArchive()(load_value(folder_ / "v.pt").as<archive::Tensor>()).requires_grad());
}

TEST_F(ValueFile, LoadedViewsOfOneStorageStillShareIt) {
  ToArchive to_archive;
  const at::Tensor matrix = torch::arange(6).reshape({2, 3});
  save_value(folder_ / "v.pt", List{{to_archive(matrix), to_archive(matrix.t())}});
  const Value read = load_value(folder_ / "v.pt");
  FromArchive from_archive;
  const at::Tensor first = from_archive(read.items()[0].as<archive::Tensor>());
  const at::Tensor second = from_archive(read.items()[1].as<archive::Tensor>());

  first[0][2] = 70;

  EXPECT_EQ(second[2][0].item<std::int64_t>(), 70);
}

}  // namespace
}  // namespace yoke::checkpoint
