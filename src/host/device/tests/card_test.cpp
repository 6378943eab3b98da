// Against the driver of this machine.

#include <cstdio>

#include <gtest/gtest.h>

#include "yoke/core/environment.hpp"
#include "yoke/device/device.hpp"

namespace yoke::device {
namespace {

TEST(Cards, TheDriverTellsAsManyAsThereAreDeviceNodes) {
  const NvmlOpened opened = open_nvml();

  ASSERT_TRUE(opened.nvml) << opened.why_not;
  EXPECT_EQ(visible_gpu_count({}), opened.nvml->count());
  EXPECT_EQ(static_cast<int>(visible_cards({}, *opened.nvml).cards.size()), opened.nvml->count());
}

TEST(Cards, HaveAUuidANameABusAndMemory) {
  const NvmlOpened opened = open_nvml();
  ASSERT_TRUE(opened.nvml) << opened.why_not;

  for (const Card& card : visible_cards({}, *opened.nvml).cards) {
    std::printf("card %d: %s, %s, %s, %llu bytes\n", card.index, card.uuid.c_str(),
                card.name.c_str(), card.bus_id.c_str(),
                static_cast<unsigned long long>(card.memory_bytes));
    EXPECT_EQ(card.uuid.size(), 40U);
    EXPECT_TRUE(card.uuid.starts_with("GPU-"));
    EXPECT_FALSE(card.name.empty());
    EXPECT_EQ(card.bus_id.size(), 16U);
    EXPECT_GT(card.memory_bytes, std::uint64_t{1} << 30);
  }
}

TEST(Cards, B101TheFirstOneIsFoundByTheBeginningOfItsUuid) {
  const NvmlOpened opened = open_nvml();
  ASSERT_TRUE(opened.nvml) << opened.why_not;
  const std::string uuid = opened.nvml->card(0).uuid;

  const VisibleCards visible =
      visible_cards({{"CUDA_VISIBLE_DEVICES", uuid.substr(0, uuid.size() - 1)}}, *opened.nvml);

  ASSERT_EQ(visible.cards.size(), 1U);
  EXPECT_EQ(visible.cards[0].uuid, uuid);
}

}  // namespace
}  // namespace yoke::device
