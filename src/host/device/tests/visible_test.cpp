#include "yoke/device/visible.hpp"

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"
#include "yoke/device/fake_nvml.hpp"

namespace yoke::device {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Eight cards; 2 and 5 have UUIDs that begin alike.
FakeNvml eight_cards() {
  std::vector<Card> cards = FakeNvml::cards(8);
  cards[2].uuid = "GPU-5a88e6c1-0000-1111-2222-333344445555";
  cards[5].uuid = "GPU-5a90e6c1-0000-1111-2222-333344445555";
  return FakeNvml(std::move(cards));
}

VisibleCards seen(const std::string& value) {
  return visible_cards({{"CUDA_VISIBLE_DEVICES", value}}, eight_cards());
}

std::vector<int> indices(const VisibleCards& visible) {
  std::vector<int> out;
  for (const Card& card : visible.cards) out.push_back(card.index);
  return out;
}

TEST(Visible, B101EveryCardIsSeenWhereTheVariableIsAbsentOrNamesAll) {
  EXPECT_EQ(visible_cards({}, eight_cards()).cards.size(), 8U);

  const VisibleCards all = seen("0,1,2,3,4,5,6,7");
  EXPECT_THAT(indices(all), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(all.ended_by, "");
  EXPECT_THAT(indices(seen(" 3 , 1")), ElementsAre(3, 1)) << "the order is the user's";
}

TEST(Visible, B101ANegativeIndexEndsTheListAndIsNamed) {
  for (const char* value : {"0,1,2,3,-1,5,6,7", "0,1,2,3,-1,0,6,7"}) {
    const VisibleCards visible = seen(value);

    EXPECT_THAT(indices(visible), ElementsAre(0, 1, 2, 3)) << value;
    EXPECT_THAT(visible.ended_by, HasSubstr("entry 5 (-1)")) << value;
  }
}

TEST(Visible, B101ARepeatedIndexEmptiesTheList) {
  const VisibleCards visible = seen("0,1,0");

  EXPECT_THAT(visible.cards, IsEmpty());
  EXPECT_THAT(visible.ended_by, HasSubstr("entry 3 (0): repeated index 0"));
}

TEST(Visible, B101AUuidAndItsUniqueBeginningNameOneCard) {
  EXPECT_THAT(indices(seen("GPU-5a88e6c1-0000-1111-2222-333344445555")), ElementsAre(2));
  EXPECT_THAT(indices(seen("GPU-5a88")), ElementsAre(2));
  EXPECT_THAT(indices(seen("GPU-5a90,GPU-5a88")), ElementsAre(5, 2));
  EXPECT_THAT(seen("GPU-5a90,GPU-ffff").ended_by,
              HasSubstr("entry 2 (GPU-ffff): none of the 8 GPUs"));
  EXPECT_THAT(indices(seen("GPU-5a90,2")), ElementsAre(5));
  EXPECT_THAT(seen("GPU-5a88,GPU-5a88e6").ended_by, HasSubstr("repeated UUID"));
}

TEST(Visible, B101ABeginningThatFitsTwoCardsIsAmbiguous) {
  try {
    (void)seen("GPU-5a");
    FAIL() << "one of two cards was taken";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code(), core::Code::invalid_argument);
    EXPECT_THAT(error.message(), HasSubstr("ambiguous: card 2 is GPU-5a88"));
    EXPECT_THAT(error.message(), HasSubstr("card 5 is GPU-5a90"));
  }
}

TEST(Visible, B101AnEmptyValueSelectsNothing) {
  EXPECT_THAT(seen("").cards, IsEmpty());
  EXPECT_EQ(seen("").ended_by, "set but empty");
  EXPECT_EQ(seen("  ").ended_by, "set but empty");
}

TEST(Visible, B101WhatFollowsANumberIsIgnoredAsCudaDoesAndWarnedOf) {
  const VisibleCards visible = seen("1gpu2,2x");

  EXPECT_THAT(indices(visible), ElementsAre(1, 2));
  EXPECT_THAT(visible.warnings,
              ElementsAre(HasSubstr("entry 1 (1gpu2): read as 1"), HasSubstr("entry 2 (2x)")));
}

TEST(Visible, B101AnIndexBeyondTheMachineSelectsNothing) {
  const VisibleCards visible = seen("9");

  EXPECT_THAT(visible.cards, IsEmpty());
  EXPECT_THAT(visible.ended_by, HasSubstr("index 9, only 8 GPUs"));
  EXPECT_THAT(indices(seen("3,9,4")), ElementsAre(3));
  EXPECT_THAT(indices(seen("3,9,3")), IsEmpty())
      << "a repetition empties the list even behind its end";
  EXPECT_THAT(seen("99999999999999999999").ended_by, HasSubstr("only 8 GPUs"));
}

TEST(Visible, WhatIsNoNumberEndsTheList) {
  EXPECT_THAT(seen("NoDevFiles").ended_by,
              HasSubstr("entry 1 (NoDevFiles)"));  // Slurm's word for "none"
  EXPECT_THAT(indices(seen("0,,1")), ElementsAre(0));
  EXPECT_THAT(indices(seen("-")), IsEmpty());
  EXPECT_THAT(indices(seen("+1")), ElementsAre(1));
}

TEST(Visible, OneMigInstanceIsSeenByAProcess) {
  const VisibleCards visible = seen("MIG-aaaa,MIG-bbbb");

  ASSERT_EQ(visible.cards.size(), 1U);
  EXPECT_EQ(visible.cards[0].uuid, "MIG-aaaa");
  EXPECT_THAT(visible.ended_by, HasSubstr("one MIG instance"));
}

class VisibleCount : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "yoke-visible-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    fs::create_directory(root_ / "dev");
  }
  void TearDown() override { fs::remove_all(root_); }

  void add(const fs::path& file) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << "";
  }

  [[nodiscard]] int count(const core::EnvironmentMap& variables = {}) {
    return visible_gpu_count(variables, root_, [this]() -> NvmlOpened {
      ++opened_;
      return {.nvml = std::make_unique<FakeNvml>(FakeNvml::cards(4))};
    });
  }

  fs::path root_;
  int opened_ = 0;
};

TEST_F(VisibleCount, DeviceNodesAreCountedAndTheirNeighboursAreNot) {
  for (const char* node :
       {"nvidia3", "nvidia10", "nvidiactl", "nvidia-uvm", "nvidia", "nvidia1x"}) {
    add(fs::path("dev") / node);
  }
  fs::create_directory(root_ / "dev/nvidia-caps");

  EXPECT_EQ(count(), 2);
  EXPECT_EQ(opened_, 0);
}

TEST_F(VisibleCount, TheVariableIsHonouredWithoutNvml) {
  for (int i = 0; i < 4; ++i) add(fs::path("dev") / ("nvidia" + std::to_string(i)));

  EXPECT_EQ(count({{"CUDA_VISIBLE_DEVICES", "2,0"}}), 2);
  EXPECT_EQ(count({{"CUDA_VISIBLE_DEVICES", ""}}), 0);
  EXPECT_EQ(count({{"CUDA_VISIBLE_DEVICES", "0,7"}}), 1);
  EXPECT_EQ(count({{"CUDA_VISIBLE_DEVICES", "GPU-1111,GPU-2222,GPU-3333"}}), 3);
  EXPECT_EQ(count({{"CUDA_VISIBLE_DEVICES", "GPU-1,GPU-2,GPU-3,GPU-4,GPU-5"}}), 4);
  EXPECT_EQ(count({{"CUDA_VISIBLE_DEVICES", "GPU-1111,GPU-1111"}}), 0);
  EXPECT_EQ(count({{"CUDA_VISIBLE_DEVICES", "MIG-1,MIG-2"}}), 1);
}

TEST_F(VisibleCount, ADriverThatHasNotMadeItsNodesYetIsAsked) {
  add("proc/driver/nvidia/version");

  EXPECT_EQ(count(), 4);
  EXPECT_EQ(count({{"CUDA_VISIBLE_DEVICES", "1"}}), 1);
}

TEST_F(VisibleCount, AMachineWithoutADriverHasNone) {
  EXPECT_EQ(count(), 0);
  EXPECT_EQ(count({{"CUDA_VISIBLE_DEVICES", "0,1"}}), 0);
  EXPECT_EQ(opened_, 0);
}

}  // namespace
}  // namespace yoke::device
