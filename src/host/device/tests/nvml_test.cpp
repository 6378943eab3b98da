#include "yoke/device/nvml.hpp"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"
#include "yoke/device/fake_nvml.hpp"

namespace yoke::device {
namespace {

using ::testing::HasSubstr;

TEST(Nvml, ACardIsReadThroughTheDriversLibrary) {
  const NvmlOpened opened = open_nvml(YOKE_STUB_NVML);

  ASSERT_TRUE(opened.nvml) << opened.why_not;
  EXPECT_EQ(opened.nvml->count(), 2);
  const Card card = opened.nvml->card(0);
  EXPECT_EQ(card.index, 0);
  EXPECT_EQ(card.uuid, "GPU-5a88e6c1-0000-1111-2222-333344445555");
  EXPECT_EQ(card.name, "NVIDIA H200");
  EXPECT_EQ(card.bus_id, "00000000:1B:00.0");
  EXPECT_EQ(card.memory_bytes, 150'754'820'096U);
  EXPECT_EQ(card.capability, "9.0");
}

TEST(Nvml, ALostCardIsAnErrorInTheDriversWords) {
  const NvmlOpened opened = open_nvml(YOKE_STUB_NVML);

  try {
    (void)opened.nvml->card(1);
    FAIL() << "read a lost card";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code(), core::Code::cuda);
    EXPECT_THAT(error.message(), HasSubstr("card 1: GPU is lost"));
  }
}

TEST(Nvml, NoLibraryAndNoDriverAreReasonsAndNotErrors) {
  const NvmlOpened missing = open_nvml("libnvidia-ml-of-nobody.so");
  ::setenv("STUB_NVML_INIT", "fail", 1);
  const NvmlOpened unloaded = open_nvml(YOKE_STUB_NVML);
  ::unsetenv("STUB_NVML_INIT");
  const NvmlOpened other = open_nvml("libm.so.6");

  EXPECT_FALSE(missing.nvml);
  EXPECT_THAT(missing.why_not, HasSubstr("libnvidia-ml-of-nobody.so"));
  EXPECT_FALSE(unloaded.nvml);
  EXPECT_THAT(unloaded.why_not, HasSubstr("Driver Not Loaded"));
  EXPECT_FALSE(other.nvml);
  EXPECT_THAT(other.why_not, HasSubstr("lacks functions"));
}

TEST(FakeNvml, ShowsTheCardsThatItWasGivenAndFailsWhereTold) {
  FakeNvml nvml(FakeNvml::cards(3));

  nvml.fail(2, "GPU is lost");

  EXPECT_EQ(nvml.count(), 3);
  EXPECT_EQ(nvml.card(1).index, 1);
  EXPECT_NE(nvml.card(0).uuid, nvml.card(1).uuid);
  EXPECT_THROW((void)nvml.card(2), core::Error);
  EXPECT_THROW((void)nvml.card(3), core::Error);
}

}  // namespace
}  // namespace yoke::device
