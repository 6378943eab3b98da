#include "yoke/launch/core_binding.hpp"

#include <unistd.h>

#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A machine of two NUMA nodes of four cores, with one card at the second.
class Machine : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() / core::text("yoke-binding-", ::getpid());
    put("sys/devices/system/node/node0/cpulist", "0-3\n");
    put("sys/devices/system/node/node1/cpulist", "4-7\n");
    put("sys/bus/pci/devices/0000:1b:00.0/numa_node", "1\n");
    put("sys/bus/pci/devices/0000:3d:00.0/numa_node", "-1\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void put(const std::string& name, const std::string& words) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    core::write_atomically(root_ / name, words);
  }

  std::filesystem::path root_;
  std::vector<int> all_{0, 1, 2, 3, 4, 5, 6, 7};
};

TEST_F(Machine, ACardsOwnNodeIsTaken) {
  const auto cores = numa_cores(1, {"00000000:1B:00.0"}, all_, root_);

  EXPECT_THAT(cores, ElementsAre(ElementsAre(4, 5, 6, 7)));
}

TEST_F(Machine, WithoutCardsRanksAreSpreadOverTheNodes) {
  const auto cores = numa_cores(4, {}, all_, root_);

  EXPECT_THAT(cores, ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(0, 1, 2, 3),
                                 ElementsAre(4, 5, 6, 7), ElementsAre(4, 5, 6, 7)));
  EXPECT_THAT(numa_cores(1, {"00000000:3D:00.0"}, all_, root_),
              ElementsAre(ElementsAre(0, 1, 2, 3)));
}

TEST_F(Machine, WhatTheProcessMayNotUseIsLeftOut) {
  EXPECT_THAT(numa_cores(1, {"00000000:1B:00.0"}, {0, 5}, root_), ElementsAre(ElementsAre(5)));
  EXPECT_THAT(numa_cores(2, {}, {0, 1}, root_), ElementsAre(IsEmpty(), IsEmpty()));
}

TEST(SharedCores, AreEqualAndNeighbours) {
  EXPECT_THAT(shared_cores(2, {0, 1, 2, 3, 8}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3, 8)));
  EXPECT_THAT(shared_cores(3, {4, 5}), ElementsAre(ElementsAre(4), ElementsAre(4), ElementsAre(5)));
}

TEST(CoreList, ReadsWhatSysfsWrites) {
  EXPECT_THAT(core_list("0-2,8\n"), ElementsAre(0, 1, 2, 8));
  EXPECT_THROW(static_cast<void>(core_list("3-1")), Error);
  EXPECT_THROW(static_cast<void>(core_list("a")), Error);
}

}  // namespace
}  // namespace yoke::launch
