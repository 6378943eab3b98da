#include "yoke/core/process.hpp"

#include <chrono>
#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"

namespace yoke::core {
namespace {

using namespace std::chrono_literals;

ChildOptions shell(const std::string& script, std::chrono::milliseconds limit = 30s) {
  return {.command = {"sh", "-c", script}, .limit = limit};
}

TEST(Process, AnotherStartTimeIsAnotherProcess) {
  const auto self = identify(::getpid());
  ASSERT_TRUE(self);
  ProcessId other = *self;
  ++other.start_time;

  EXPECT_TRUE(is_alive(*self));
  EXPECT_FALSE(is_alive(other));
  EXPECT_FALSE(send_signal(other, SIGKILL));  // or this test ends here
  EXPECT_TRUE(send_signal(*self, 0));
}

TEST(Process, WhatIsNotThereHasNoIdentity) { EXPECT_FALSE(identify(0x7FFFFFFF)); }

TEST(Process, DescendantsAreFoundInAnySession) {
  Child child(shell("setsid sh -c 'echo ready; exec sleep 600' & wait"));
  ASSERT_TRUE(child.wait_for("ready", 10s));

  const auto below = descendants(child.pid());
  const auto all = descendants(::getpid());

  ASSERT_EQ(below.size(), 1U);
  EXPECT_THAT(all, ::testing::IsSupersetOf({below[0], *identify(child.pid())}));
  EXPECT_TRUE(send_signal(below[0], SIGKILL));
}

TEST(Process, SignalsHaveNames) {
  EXPECT_EQ(signal_name(SIGSEGV), "SIGSEGV");
  EXPECT_EQ(signal_name(SIGUSR1), "SIGUSR1");
  EXPECT_EQ(signal_name(99), "signal 99");
}

TEST(Process, ProgramsAreLookedForAsAShellDoes) {
  EXPECT_EQ(find_program("sh", {{"PATH", "/nowhere:/bin"}}), "/bin/sh");
  EXPECT_EQ(find_program("/bin/sh", {}), "/bin/sh");
  EXPECT_FALSE(find_program("sh", {{"PATH", "/nowhere"}}));
  EXPECT_FALSE(find_program("", {}));
  EXPECT_FALSE(find_program("/bin", {}));
}

TEST(Child, GivesInputAndTakesBothOutputsAndTheCode) {
  ChildOptions options = shell("cat; echo words >&2; exit 7");
  options.input = std::string(200'000, 'x');

  const ChildResult result = run_child(options);

  EXPECT_EQ(result.out.size(), 200'000U);
  EXPECT_EQ(result.err, "words\n");
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_FALSE(result.succeeded());
}

TEST(Child, SaysWhichSignalEndedIt) { EXPECT_EQ(run_child(shell("kill -9 $$")).signal, SIGKILL); }

TEST(Child, IsKilledWithItsGroupAtTheLimit) {
  const auto begin = std::chrono::steady_clock::now();

  const ChildResult result = run_child(shell("sleep 600 & sleep 600", 100ms));

  EXPECT_TRUE(result.timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST(Child, GetsTheVariablesGivenAndNoOthers) {
  ChildOptions options = shell("echo \"$A,$HOME\"");
  options.variables = {{"A", "b"}, {"PATH", "/usr/bin:/bin"}};

  EXPECT_EQ(run_child(options).out, "b,\n");
}

TEST(Child, AProgramThatIsNotThereIsNamed) {
  try {
    static_cast<void>(run_child({.command = {"no-such-program"}}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("no-such-program"));
  }
}

}  // namespace
}  // namespace yoke::core
