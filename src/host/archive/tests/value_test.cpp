#include "yoke/archive/value.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch.hpp"

namespace yoke::archive {
namespace {

using ::testing::HasSubstr;

TEST(ArchiveValue, TheWrongKindIsNamedWithTheRightOne) {
  const Value value = Dict{{{"lr", "fast"}}};

  EXPECT_THAT(error_of([&] { (void)value.as<Dict>().at("lr").number(); }).message(),
              HasSubstr("expected a value of kind float, found string"));
  EXPECT_THAT(error_of([&] { (void)value.items(); }).message(), HasSubstr("kind list, found dict"));
}

TEST(ArchiveValue, AMissingKeyIsNamedWithThoseThatAreThere) {
  const Value value = Dict{{{"lr", 0.1}, {"momentum", 0.9}, {7, 1}}};

  const Error error = error_of([&] { (void)value.as<Dict>().at("nesterov"); });

  EXPECT_THAT(error.message(), HasSubstr("no entry \"nesterov\"; there are: lr, momentum, int"));
}

TEST(ArchiveValue, WhatIsNoStateDictSaysWhere) {
  const Error error =
      error_of([&] { (void)named_tensors(Dict{{{"model", Dict{}}, {"epoch", 3}}}); });

  EXPECT_EQ(error.code(), Code::corrupt_data);
  EXPECT_THAT(error.message(), HasSubstr("entry \"model\" holds a dict"));
  EXPECT_THAT(error.hint(), HasSubstr("\"state_dict\""));
}

TEST(ArchiveValue, NumbersOfEveryKindCountAsFloats) {
  EXPECT_EQ(Value(1).number(), 1.0);
  EXPECT_EQ(Value(true).number(), 1.0);
  EXPECT_EQ(Value(0.5).number(), 0.5);
}

}  // namespace
}  // namespace yoke::archive
