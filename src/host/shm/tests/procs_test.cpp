#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include <gmock/gmock.h>

#include "contract.hpp"

namespace yoke::shm::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(Processes, Contract,
                         ::testing::Values(Setting{Ranks::processes, 2},
                                           Setting{Ranks::processes, 4}),
                         setting_name);

void expect_error(const Outcome& outcome, Code code, const ::testing::Matcher<std::string>& text) {
  ASSERT_TRUE(outcome.error.has_value());
  EXPECT_EQ(outcome.error->code(), code) << outcome.error->what();
  EXPECT_THAT(outcome.error->message(), text);
}

// Waits, in a rank, for what the test does to it.
[[noreturn]] void be_still() {
  while (true) ::pause();
}

TEST(TeamOfProcesses, AKilledRankIsNamedToAllOthersLongBeforeTheLimit) {
  const auto outcomes = run_processes(4, [](Team& team) -> std::string {
    const SharedBuffer buffer = team.allocate(1 << 20);
    team.barrier();
    if (team.rank() == 2) ::raise(SIGKILL);
    team.wait(team.start_all_reduce(buffer, 0, {.count = 1 << 18}, Reduction::mean));
    return {};
  });

  EXPECT_TRUE(outcomes[2].died);
  for (const std::size_t rank : {0U, 1U, 3U}) {
    expect_error(
        outcomes[rank], Code::peer_lost,
        AllOf(HasSubstr(" (262144 float32, 1.0 MiB): rank 2 (process "), HasSubstr(") is gone")));
    EXPECT_LT(outcomes[rank].end - outcomes[2].end, 5s);
  }
}

TEST(TeamOfProcesses, ARankKilledBetweenItsArrivalAndItsWorkIsNamed) {
  const auto outcomes = run_processes(3, [](Team& team) -> std::string {
    const SharedBuffer buffer = team.allocate(1 << 20);
    const Ticket ticket = team.start_all_reduce(buffer, 0, {.count = 1 << 18}, Reduction::mean);
    if (team.rank() == 0) ::raise(SIGKILL);
    team.wait(ticket);
    return {};
  });

  EXPECT_TRUE(outcomes[0].died);
  for (const std::size_t rank : {1U, 2U}) {
    expect_error(outcomes[rank], Code::peer_lost, HasSubstr("rank 0 (process "));
  }
}

TEST(TeamOfProcesses, ASenderKilledInTheMiddleOfAMessageIsNamed) {
  const auto outcomes = run_processes(2, [](Team& team) -> std::string {
    std::vector<float> values(10'000);
    const auto more = values.size() + 1;
    if (team.rank() == 0) {
      team.send(values.data(), {.count = values.size()}, 1);
      ::raise(SIGKILL);
    }
    values.resize(more);
    team.receive(values.data(), {.count = more - 1}, 0);
    team.receive(values.data(), {.count = more}, 0);
    return {};
  });

  EXPECT_TRUE(outcomes[0].died);
  expect_error(outcomes[1], Code::peer_lost, HasSubstr("receive #2 from rank 0"));
}

TEST(TeamOfProcesses, AStalledRankIsNamedAtTheLimit) {
  TeamOptions options = small_options();
  options.timeout = 200ms;

  const auto outcomes = run_processes(3,
                                      [](Team& team) -> std::string {
                                        team.barrier();
                                        if (team.rank() == 1) be_still();
                                        team.barrier();
                                        return {};
                                      },
                                      options, /*stalled=*/{1});

  for (const std::size_t rank : {0U, 2U}) {
    expect_error(
        outcomes[rank], Code::timeout,
        HasSubstr("barrier #2: no answer from rank 1 (did not come; its last was #1) in "));
  }
}

TEST(TeamOfProcesses, B017DifferentShapesAreShownOnBothRanks) {
  const auto outcomes = run_processes(2, [](Team& team) -> std::string {
    std::vector<float> values(220);
    const bool first = team.rank() == 0;
    team.all_reduce(values.data(),
                    {.count = first ? 200U : 220U, .shape = first ? "20x10" : "20x11"},
                    Reduction::sum);
    return {};
  });

  for (const Outcome& outcome : outcomes) {
    expect_error(outcome, Code::invalid_argument,
                 HasSubstr("operation #1: ranks 0 and 1 made different calls: rank 0: all-reduce "
                           "20x10 float32, rank 1: all-reduce 20x11 float32; shapes differ "
                           "(20x10 vs 20x11)"));
  }
}

TEST(TeamOfProcesses, AForkedChildOfARankThatEndsDoesNotEndTheTeam) {
  const auto outcomes = run_processes(2, [](Team& team) -> std::string {
    team.barrier();
    const pid_t child = ::fork();
    if (child == 0) {
      team.~Team();
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    team.barrier();
    return {};
  });

  expect_all_well(outcomes);
}

}  // namespace
}  // namespace yoke::shm::testing
