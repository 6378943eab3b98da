#include "yoke/cluster/hosts.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"

namespace yoke::cluster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(const std::string& file) {
  try {
    static_cast<void>(parse_host_file(file, "hosts"));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.message();
  }
  ADD_FAILURE() << file << " was taken";
  return {};
}

TEST(HostFile, ReadsHostsAndSlots) {
  const auto hosts =
      parse_host_file("# ours\n\n10.0.0.1 slots=8\nworker-2\tslots=4 max_slots=8\r\nn3\n", "hosts");

  EXPECT_THAT(hosts, ElementsAre(Host{.name = "10.0.0.1", .slots = 8},
                                 Host{.name = "worker-2", .slots = 4}, Host{.name = "n3"}));
}

TEST(HostFile, B040ABadLineIsQuotedWithItsNumber) {
  EXPECT_THAT(
      refusal("10.0.0.1 slots=8\n10.0.0.2 lots=8\n"),
      AllOf(HasSubstr("hosts, line 2"), HasSubstr("'10.0.0.2 lots=8'"), HasSubstr("'lots=8'")));
  EXPECT_THAT(refusal("a slots=0\n"), HasSubstr("'slots=0' is no number of ranks"));
  EXPECT_THAT(refusal("a slots=8\na slots=8\n"), HasSubstr("line 2"));
  EXPECT_THAT(refusal("# nobody\n"), HasSubstr("names no host"));
}

TEST(HostFile, B040OnlyTheSlotsThatAreIncludedCount) {
  const std::vector<Host> hosts{{.name = "worker-0", .slots = 4}, {.name = "worker-1", .slots = 4}};

  EXPECT_THAT(included(hosts, "worker-1:0,2"),
              ElementsAre(Host{.name = "worker-1", .slots = 2, .devices = {0, 2}}));
  EXPECT_THAT(included(hosts, "worker-0@worker-1:3"),
              ElementsAre(Host{.name = "worker-0", .slots = 4},
                          Host{.name = "worker-1", .slots = 1, .devices = {3}}));
  EXPECT_THROW(static_cast<void>(included(hosts, "worker-1:4")), Error);
  EXPECT_THROW(static_cast<void>(included(hosts, "worker-2")), Error);
}

TEST(HostFile, B040SlotsCountTheVisibleCards) {
  EXPECT_EQ(visible_for_slots({0, 1}, "0,2", "a"), "0,2");
  EXPECT_EQ(visible_for_slots({1}, "0,2", "a"), "2");
  EXPECT_EQ(visible_for_slots({0, 2}, "", "a"), "0,2");
  EXPECT_THROW(static_cast<void>(visible_for_slots({2}, "0,2", "a")), Error);
}

TEST(HostList, ReadsSlurmsFormToo) {
  EXPECT_THAT(parse_host_list("n[1-2],b:4"),
              ElementsAre(Host{.name = "n1"}, Host{.name = "n2"}, Host{.name = "b", .slots = 4}));
  EXPECT_THROW(static_cast<void>(parse_host_list("a:x")), Error);
  EXPECT_THROW(static_cast<void>(parse_host_list("bad[1-")), Error);
}

TEST(ShellQuoted, AWordStaysOneWord) {
  EXPECT_EQ(shell_quoted("--lr=0.1"), "--lr=0.1");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("it's; $HOME"), "'it'\\''s; $HOME'");
}

TEST(Input, ItsEndIsASigterm) {
  for (const bool before : {false, true}) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    if (before) ::close(ends[1]);
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(ends[0], STDIN_FILENO);
      if (!before) ::close(ends[1]);
      end_with_input();
      ::poll(nullptr, 0, 10'000);
      ::_exit(0);
    }
    ::close(ends[0]);
    if (!before) ::close(ends[1]);

    int status = 0;
    ::waitpid(child, &status, 0);

    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  }
}

}  // namespace
}  // namespace yoke::cluster
