#include "yoke/device/host.hpp"

#include <cstdlib>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace yoke::device {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

/// A machine made of files: 16 cores, 64 GiB.
class Host : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "yoke-host-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    put("proc/self/status", "Name:\tx\nCpus_allowed:\tffff\nCpus_allowed_list:\t0-15\n");
    put("proc/meminfo",
        "MemTotal:       67108864 kB\nMemFree: 1 kB\nMemAvailable:   33554432 kB\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const fs::path& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  fs::path root_;
};

TEST_F(Host, WithoutAQuotaTheAffinityMaskCounts) {
  EXPECT_EQ(usable_cores(root_), 16);

  put("proc/self/status", "Cpus_allowed_list:\t0-3,8,10-11\n");
  EXPECT_EQ(usable_cores(root_), 7);
}

TEST_F(Host, TheTightestLevelOfAVersion2GroupCounts) {
  put("proc/self/cgroup", "0::/jobs/train\n");
  put("sys/fs/cgroup/jobs/train/cpu.max", "max 100000\n");
  EXPECT_EQ(usable_cores(root_), 16);

  put("sys/fs/cgroup/jobs/cpu.max", "350000 100000\n");
  EXPECT_EQ(usable_cores(root_), 4) << "3.5 processors are rounded up";

  put("sys/fs/cgroup/jobs/train/cpu.max", "20000 100000\n");
  EXPECT_EQ(usable_cores(root_), 1);
}

TEST_F(Host, AVersion1GroupWhosePathIsTheHostsIsFoundAtTheMount) {
  put("proc/self/cgroup", "3:memory:/docker/1f\n2:cpu,cpuacct:/docker/1f\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(usable_cores(root_), 2);

  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(usable_cores(root_), 16);
}

TEST_F(Host, AQuotaAboveTheMaskChangesNothing) {
  put("proc/self/cgroup", "0::/\n");
  put("sys/fs/cgroup/cpu.max", "6400000 100000\n");

  EXPECT_EQ(usable_cores(root_), 16);
}

TEST_F(Host, DamagedFilesStillGiveAtLeastOneCore) {
  put("proc/self/status", "Cpus_allowed_list:\tnone\n");
  put("proc/self/cgroup", "nonsense\n0::\n");
  put("sys/fs/cgroup/cpu.max", "many 0\n");

  EXPECT_EQ(usable_cores(root_), 1);
}

TEST_F(Host, MemoryIsTheMachinesUntilAGroupLimitsIt) {
  const HostMemory free = host_memory(root_);
  EXPECT_EQ(free.total_bytes, 64 * kGiB);
  EXPECT_EQ(free.available_bytes, 32 * kGiB);
  EXPECT_EQ(free.limit_bytes, 64 * kGiB);
  EXPECT_EQ(free.shared_bytes, 0U);

  put("proc/self/cgroup", "4:memory:/job\n0::/job\n");
  put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(host_memory(root_).limit_bytes, 64 * kGiB)
      << "version 1 writes a huge number for no limit";

  put("sys/fs/cgroup/job/memory.max", "max\n");
  put("sys/fs/cgroup/memory.max", std::to_string(8 * kGiB) + "\n");
  EXPECT_EQ(host_memory(root_).limit_bytes, 8 * kGiB);
  EXPECT_EQ(host_memory(root_).available_bytes, 8 * kGiB);
}

TEST(ThisHost, HasACoreAndANameAndMemory) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_FALSE(host_name().empty());
  EXPECT_EQ(host_name().find('.'), std::string::npos);
  EXPECT_GT(host_memory().available_bytes, 0U);
  EXPECT_GE(host_memory().total_bytes, host_memory().limit_bytes);
}

}  // namespace
}  // namespace yoke::device
