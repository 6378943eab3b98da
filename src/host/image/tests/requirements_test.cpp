#include "yoke/image/requirements.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace yoke::image {
namespace {

using ::testing::HasSubstr;

TEST(RequirementsReader, ReadsWhatPipReads) {
  const std::string text =
      "# comment\n--index-url https://download.pytorch.org/whl/cu126\n-r other.txt\n"
      "torch == 2.9.1+cu126 ; sys_platform == 'linux'  # why\nTorch_Vision[x]>=0.24,<0.25\n"
      "pkg @ https://example.org/p.whl\n./local\n-e .\n"
      "a==1 \\\n  --hash=sha256:00 \\\n  --hash=sha256:01\n";

  const RequirementsFile file = parse_requirements(text, "requirements.txt");

  ASSERT_TRUE(file.faults.empty()) << file.faults[0].reason;
  ASSERT_EQ(file.requirements.size(), 4u);
  EXPECT_EQ(file.requirements[0].exact(), "2.9.1+cu126");
  EXPECT_EQ(file.requirements[0].marker, "sys_platform == 'linux'");
  EXPECT_EQ(file.requirements[0].where.line, 4);
  EXPECT_EQ(file.requirements[1].name, "torch-vision");
  EXPECT_EQ(file.requirements[1].conditions, ">=0.24,<0.25");
  EXPECT_EQ(file.requirements[1].exact(), std::nullopt);
  EXPECT_EQ(file.requirements[2].url, "https://example.org/p.whl");
  EXPECT_TRUE(file.requirements[3].has_hash);
  ASSERT_EQ(file.options.size(), 3u);
  EXPECT_EQ(file.options[0].name, "index-url");
  EXPECT_EQ(text.substr(file.options[0].where.begin, 5), "https");
}

TEST(RequirementsReader, NamesTheLineThatIsNoRequirement) {
  const RequirementsFile file = parse_requirements("torch=2.9\n--colour x\n-r\nnumpy\n", "r");

  ASSERT_EQ(file.faults.size(), 3u);
  EXPECT_THAT(file.faults[0].reason, HasSubstr("'torch=2.9' is no requirement"));
  EXPECT_EQ(file.faults[1].line, 2);
  EXPECT_THAT(file.faults[2].reason, HasSubstr("-r has no value"));
  EXPECT_EQ(file.requirements.size(), 1u);
}

}  // namespace
}  // namespace yoke::image
