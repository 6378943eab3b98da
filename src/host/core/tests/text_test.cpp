#include "yoke/core/text.hpp"

#include <gtest/gtest.h>

namespace yoke::core {
namespace {

TEST(Text, NearestNamesASlipAndNotAnotherWord) {
  const std::vector<std::string> models{"mlp", "small-cnn", "resnet18", "resnet50"};

  EXPECT_EQ(nearest("resnet5O", models), "resnet50");
  EXPECT_EQ(nearest("smal-cnn", models), "small-cnn");
  EXPECT_FALSE(nearest("transformer", models));
  EXPECT_EQ(unknown_name_hint("transformer", models), "known: mlp, small-cnn, resnet18, resnet50");
}

TEST(Text, BytesReadAsPeopleWriteThem) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(25 << 20), "25.0 MiB");
}

TEST(Text, IntegersAreTakenWholeOrNotAtAll) {
  EXPECT_EQ(parse_integer("-12"), -12);
  EXPECT_FALSE(parse_integer("12x"));
  EXPECT_FALSE(parse_integer(""));
  EXPECT_FALSE(parse_integer("99999999999999999999"));
}

TEST(Text, PatternsMatchAsInAShell) {
  EXPECT_TRUE(matches_pattern("layer1.0.conv1.weight", "layer1.*"));
  EXPECT_TRUE(matches_pattern("fc.bias", "fc.????"));
  EXPECT_TRUE(matches_pattern("", "*"));
  EXPECT_FALSE(matches_pattern("layer2.0.bn1.bias", "layer1.*"));
  EXPECT_FALSE(matches_pattern("abc", "ab"));
  EXPECT_TRUE(matches_pattern("a.b.a.b", "*a.b"));
}

TEST(Text, SplitKeepsEmptyPieces) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
}

}  // namespace
}  // namespace yoke::core
