#include "yoke/doctor/process.hpp"

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_machine.hpp"
#include "yoke/core/error.hpp"

namespace yoke::doctor {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

TEST(Process, TwoMappedCopiesOfOneLibraryAreNamed) {
  FakeMachine fake;
  fake.scratch.write("proc/42/comm", "python\n");
  fake.scratch.write("wheel/libcudnn.so.9.10.2");
  fake.scratch.write("opt/libcudnn.so.9.1.0");
  fake.scratch.write("proc/42/maps",
                     "7f00-7f01 r-xp 0 08:01 1   /wheel/libcudnn.so.9.10.2\n"
                     "7f01-7f02 r--p 0 08:01 1   /wheel/libcudnn.so.9.10.2\n"
                     "7f02-7f03 r-xp 0 08:01 2   /opt/libcudnn.so.9.1.0\n"
                     "7f03-7f04 r-xp 0 08:01 3   /usr/lib/libm.so.6\n"
                     "7f04-7f05 r-xp 0 08:01 4   /opt/libnccl.so.2 (deleted)\n"
                     "7f05-7f06 rw-p 0 00:00 0   [heap]\n");

  const ProcessLibraries process = read_process(*fake.machine(), 42);

  EXPECT_EQ(process.command, "python");
  ASSERT_EQ(process.libraries.size(), 3U);
  EXPECT_EQ(process.libraries[0].version->version.text(), "9.1.0");
  EXPECT_TRUE(process.libraries[2].deleted);
  EXPECT_THAT(process.warnings,
              Contains(AllOf(HasSubstr("2 copies of libcudnn"), HasSubstr("9.10.2 /wheel/"))));
  EXPECT_THAT(process.warnings, Contains(HasSubstr("replaced on disk")));
}

TEST(Process, OneThatIsNotThereIsNamed) {
  const FakeMachine fake;

  EXPECT_THROW(static_cast<void>(read_process(*fake.machine(), 42)), Error);
}

TEST(Process, ThisOneCanBeLookedAt) {
  const Machine machine({.root = "/", .variables = {}});

  EXPECT_EQ(read_process(machine, ::getpid()).pid, ::getpid());
}

}  // namespace
}  // namespace yoke::doctor
