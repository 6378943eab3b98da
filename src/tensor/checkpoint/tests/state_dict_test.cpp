#include "yoke/checkpoint/state_dict.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch.hpp"

namespace yoke::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(StateDict, NamesComeInPythonsOrder) {
  const Net net;

  EXPECT_THAT(names(state_dict(net)),
              ElementsAre("scale", "mean", "first.weight", "first.bias", "norm.weight", "norm.bias",
                          "norm.running_mean", "norm.running_var", "norm.num_batches_tracked",
                          "last.weight", "last.bias"));
}

TEST(StateDict, TensorsAreDetachedAliases) {
  const Net net;

  const StateDict state = state_dict(net);

  EXPECT_FALSE(tensor_of(state, "scale").requires_grad());
  EXPECT_EQ(tensor_of(state, "scale").data_ptr(), net.scale.data_ptr());
  EXPECT_EQ(tensor_of(state, "last.weight").data_ptr(),
            tensor_of(state, "first.weight").data_ptr());
}

TEST(LoadInto, EveryTensorIsCopiedAndKeepsItsMemory) {
  Net from;
  Net to;
  fill_counting(from);
  const void* address = to.scale.data_ptr();

  const LoadReport report = load_into(to, state_dict(from));

  for (const auto& [name, tensor] : state_dict(from))
    EXPECT_TRUE(at::equal(tensor, tensor_of(state_dict(to), name))) << name;
  EXPECT_EQ(to.scale.data_ptr(), address);
  EXPECT_TRUE(to.scale.requires_grad());
  EXPECT_TRUE(report.missing.empty());
  EXPECT_TRUE(report.unexpected.empty());
}

TEST(LoadInto, ValuesTakeTheModulesDtype) {
  Net from;
  Net to;
  fill_counting(from);
  StateDict state = state_dict(from);
  for (auto& [name, tensor] : state) {
    if (tensor.is_floating_point()) tensor = tensor.to(at::kBFloat16);
  }

  load_into(to, state);

  EXPECT_EQ(to.first->weight.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(to.first->weight, from.first->weight));  // 3 to 18: exact in bfloat16
}

TEST(LoadInto, B081WhatDoesNotMatchStandsInOneErrorAndNothingIsCopied) {
  Net net;
  Net wider(5);
  StateDict state = state_dict(wider);
  state[0].first = "scales";
  const at::Tensor before = net.last->bias.clone();

  const Error error = error_of([&] { load_into(net, state); });

  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_THAT(error.message(), HasSubstr("1 missing (scale)"));
  EXPECT_THAT(error.message(), HasSubstr("1 unexpected (scales)"));
  EXPECT_THAT(
      error.message(),
      HasSubstr("8 of another shape (first.weight: [5, 5] in the state, [4, 4] in the module, "));
  EXPECT_TRUE(at::equal(net.last->bias, before));
}

TEST(LoadInto, ASlipOfThePenIsNamedInTheHint) {
  Net net;
  StateDict state = state_dict(net);
  state[0].first = "scales";

  EXPECT_THAT(error_of([&] { load_into(net, state); }).hint(),
              HasSubstr("is scales of the state meant for scale?"));
}

TEST(LoadInto, WithoutStrictOnlyShapesAreErrors) {
  Net net;
  StateDict state = state_dict(net);
  state.erase(state.begin());
  state.emplace_back("extra", torch::ones({1}));

  const LoadReport report = load_into(net, state, {.strict = false});
  state[0].second = torch::ones({3});

  EXPECT_THAT(report.missing, ElementsAre("scale"));
  EXPECT_THAT(report.unexpected, ElementsAre("extra"));
  EXPECT_THAT(error_of([&] { load_into(net, state, {.strict = false}); }).message(),
              HasSubstr("mean: [3] in the state, [2] in the module"));
}

TEST(LoadInto, ThePrefixOfPythonsDdpIsTakenOff) {
  Net from;
  Net to;
  fill_counting(from);
  StateDict state = state_dict(from);
  for (auto& item : state) item.first = "module." + item.first;

  load_into(to, state);

  EXPECT_TRUE(at::equal(to.last->bias, from.last->bias));
}

TEST(LoadInto, AChildThatIsCalledModuleKeepsItsName) {
  struct Wrapper : torch::nn::Module {
    Wrapper() { register_module("module", std::make_shared<Net>()); }
  };
  Wrapper from;
  Wrapper to;
  fill_counting(from);

  load_into(to, state_dict(from));

  EXPECT_TRUE(at::equal(tensor_of(state_dict(to), "module.scale"),
                        tensor_of(state_dict(from), "module.scale")));
}

TEST(LoadInto, NamesLeftOutAreSkippedOnBothSides) {
  Net net;
  Net other;
  StateDict state = state_dict(other);
  for (auto& [name, tensor] : state) {
    if (name == "last.bias") tensor = torch::ones({1000});  // another number of classes
  }
  const at::Tensor before = net.last->bias.clone();

  load_into(net, state, {.leave_out = {"last.bias", "not.there"}});

  EXPECT_TRUE(at::equal(net.last->bias, before));
  EXPECT_TRUE(at::equal(net.first->bias, other.first->bias));
}

}  // namespace
}  // namespace yoke::checkpoint
