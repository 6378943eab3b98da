#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/image/image_content.hpp"

namespace yoke::image {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kLarge = std::uint64_t{100} << 20;
const std::string kSite = "opt/venv/lib/python3.11/site-packages/";

std::vector<std::string> ids(const std::vector<ImageFault>& faults) {
  std::vector<std::string> out;
  for (const ImageFault& fault : faults) out.push_back(fault.id);
  return out;
}

TEST(ImageContent, WhatALaterLayerHidesIsWaste) {
  ImageContent content;

  content.add({{.path = "data", .kind = '5'},
               {.path = "data/a", .size = kLarge},
               {.path = "data-b", .size = 1}});
  content.add({{.path = ".wh.data"}, {.path = "c", .size = 1}});

  const auto faults = content.faults();
  ASSERT_EQ(ids(faults), std::vector<std::string>{"waste"});
  EXPECT_EQ(faults[0].layer, 0);
  EXPECT_EQ(faults[0].path, "data/a");
  EXPECT_THAT(faults[0].reason, HasSubstr("100.0 MiB of this layer are hidden by layer 1"));
  EXPECT_TRUE(content.files().contains("data-b"));
  EXPECT_FALSE(content.files().contains("data"));
}

TEST(ImageContent, AFileWrittenAgainIsWasteToo) {
  ImageContent content;

  content.add({{.path = "a", .size = kLarge}});
  content.add({{.path = "a", .size = 3}});

  EXPECT_EQ(ids(content.faults()), std::vector<std::string>{"waste"});
  EXPECT_EQ(content.files().at("a").size, 3u);
}

TEST(ImageContent, AnOpaqueFolderHidesOnlyWhatLiesBelowItsLayer) {
  ImageContent content;

  content.add({{.path = "d", .kind = '5'}, {.path = "d/old", .size = 1}});
  content.add(
      {{.path = "d", .kind = '5'}, {.path = "d/new", .size = 1}, {.path = "d/.wh..wh..opq"}});

  EXPECT_TRUE(content.files().contains("d/new"));
  EXPECT_FALSE(content.files().contains("d/old"));
}

TEST(ImageContent, SecretsAreFoundInAnyLayerEvenIfALaterOneDeletesThem) {
  ImageContent content;

  content.add({{.path = "etc/ssh/ssh_host_ed25519_key", .size = 9},
               {.path = "etc/ssh/ssh_host_ed25519_key.pub", .size = 9},
               {.path = "root/.netrc", .size = 9},
               {.path = "run/secrets", .kind = '5'}});
  content.add({{.path = "root/.wh..netrc"}});

  EXPECT_EQ(ids(content.faults()), (std::vector<std::string>{"secret", "secret"}));
}

TEST(ImageContent, TwoCudasAreNamedWithBothPaths) {
  ImageContent content;

  content.add({{.path = "usr/local/cuda/lib64/libcudart.so.12.8.90", .size = 7},
               {.path = "usr/local/cuda/lib64/libcudart.so.12", .kind = '2'}});
  content.add({{.path = kSite + "nvidia/cuda_runtime/lib/libcudart.so.12", .size = 7}});

  const auto faults = content.faults();
  ASSERT_EQ(ids(faults), std::vector<std::string>{"double-cuda"});
  EXPECT_THAT(faults[0].reason, HasSubstr(kSite + "nvidia/cuda_runtime/lib/libcudart.so.12"));
}

TEST(ImageContent, IsHeldAgainstItsLock) {
  ImageContent content;
  const WheelLock lock{.wheels = {{"torch", "2.9.1", {}},
                                  {"nvidia-nccl-cu12", "2.27.5", {}},
                                  {"numpy", "2.3.0", {}}}};

  content.add({{.path = kSite + "torch-2.9.1.dist-info/METADATA", .size = 1},
               {.path = kSite + "nvidia_nccl_cu12-2.28.0.dist-info/METADATA", .size = 1},
               {.path = kSite + "nvidia_nccl_cu13-2.28.0.dist-info/METADATA", .size = 1},
               {.path = kSite + "wandb-1.0.dist-info/METADATA", .size = 1}});

  const auto faults = content.against(lock, ImageParts::built_in());
  ASSERT_EQ(faults.size(), 3u);
  EXPECT_THAT(faults[0].reason, HasSubstr("the lock has 2.27.5, the image has 2.28.0"));
  EXPECT_EQ(faults[1].path, "numpy");
  EXPECT_EQ(faults[2].path, "nvidia-nccl-cu13");
  EXPECT_THAT(content.faults(), IsEmpty());
}

TEST(ImageContent, APackageThatIsThereTwiceIsAnError) {
  ImageContent content;

  content.add({{.path = kSite + "torch-2.9.1.dist-info/METADATA", .size = 1},
               {.path = kSite + "torch-2.8.0.dist-info/METADATA", .size = 1}});

  EXPECT_EQ(ids(content.faults()), std::vector<std::string>{"package-twice"});
}

}  // namespace
}  // namespace yoke::image
