#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_machine.hpp"

namespace yoke::doctor {
namespace {

using ::testing::HasSubstr;

TEST(Host, SharedMemoryOfAPlainContainerIsAWarning) {
  FakeMachine fake;
  fake.scratch.write("proc/self/mounts", "shm /dev/shm tmpfs rw,nosuid,size=65536k 0 0\n");
  const Finding small = fake.find("host.shm");
  fake.scratch.write("proc/self/mounts", "shm /dev/shm tmpfs rw,nosuid,size=8388608k 0 0\n");
  const Finding large = fake.find("host.shm");

  EXPECT_EQ(small.status, Status::warn);
  EXPECT_THAT(small.text, HasSubstr("64.0 MiB"));
  EXPECT_THAT(small.fix, HasSubstr("--shm-size"));
  EXPECT_EQ(large.status, Status::pass);
}

TEST(Host, LimitsAreReadWithTheirUnits) {
  FakeMachine fake;
  fake.scratch.write("proc/self/limits",
                     "Limit                     Soft Limit           Hard Limit           Units\n"
                     "Max stack size            8388608              unlimited            bytes\n"
                     "Max open files            1024                 2048                 files\n"
                     "Max locked memory         65536                65536                bytes\n");
  const Finding few = fake.find("host.limits");
  fake.scratch.write("proc/self/limits",
                     "Max stack size            8388608              unlimited            bytes\n"
                     "Max open files            1024                 524288               files\n"
                     "Max locked memory         65536                65536                bytes\n");
  const Finding enough = fake.find("host.limits");
  fake.scratch.write("sys/class/infiniband/mlx5_0/x");

  EXPECT_EQ(few.status, Status::warn);
  EXPECT_THAT(few.fix, HasSubstr("ulimit -n"));
  EXPECT_EQ(enough.status, Status::pass);
  EXPECT_THAT(fake.find("host.limits").fix, HasSubstr("memlock"));
}

TEST(Host, WhatIsNotThereIsSkippedAndNotGuessed) {
  const FakeMachine fake;

  EXPECT_EQ(fake.find("host.limits").status, Status::skip);
  EXPECT_EQ(fake.find("host.cgroups").status, Status::skip);
}

TEST(Host, TheContainerAndItsEnginesAreNamed) {
  FakeMachine fake;
  fake.scratch.write("run/.containerenv");
  fake.scratch.write("usr/bin/bwrap");

  EXPECT_EQ(fake.find("host.container").text, "inside Podman; has bwrap");
}

}  // namespace
}  // namespace yoke::doctor
