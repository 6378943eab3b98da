// Jobs of several machines, played on one: an agent (`yoke launch`) for each, who meet at the
// coordinator on the loopback address.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job_processes.hpp"
#include "yoke/cluster/http_call.hpp"
#include "yoke/cluster/message.hpp"
#include "yoke/core/descriptor.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cli {
namespace {

using namespace std::chrono_literals;
using core::Child;
using core::ChildResult;
using core::text;
using launch::eventually;
using launch::processes_of_job;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// A port that was free a moment ago, below those that the system gives away itself.
int free_port() {
  static int next = 12'000 + ::getpid() % 15'000;
  while (true) {
    const int port = next++;
    const core::Descriptor probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(probe.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
      return port;
  }
}

class Nodes : public ::testing::Test {
 protected:
  void SetUp() override {
    job_ = text("nodes-", ::getpid(), "-",
                ::testing::UnitTest::GetInstance()->current_test_info()->name());
    port_ = free_port();
    folder_ = std::filesystem::temp_directory_path() / job_;
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    EXPECT_TRUE(eventually(20s, [&] { return processes_of_job(job_).empty(); }));
  }

  /// Agent `node` of `count`, each with two ranks; scripts by global rank.
  std::unique_ptr<Child> agent(int node, int count, const std::vector<std::string>& scripts,
                               const std::vector<std::string>& options = {},
                               const std::string& secret = "0123456789abcdef0123") const {
    std::vector<std::string> command{
        YOKE_PROGRAM,       "launch",
        "--nnodes",         std::to_string(count),
        "--node-rank",      std::to_string(node),
        "--nproc-per-node", "2",
        "--rdzv-endpoint",  text("127.0.0.1:", port_),
        "--rdzv-id",        job_,
        "--grace",          "2",
        "--rdzv-conf",      "join_timeout=40,keep_alive_interval=2,keep_alive_max_attempt=3"};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {"--", YOKE_RANK_ACTOR});
    command.insert(command.end(), scripts.begin(), scripts.end());
    core::EnvironmentMap variables = core::environment();
    variables["YOKE_SECRET"] = secret;
    return std::make_unique<Child>(
        core::ChildOptions{.command = command, .variables = variables, .limit = 90s});
  }

  std::string job_;
  std::filesystem::path folder_;
  int port_ = 0;
};

TEST_F(Nodes, TheRanksOfAllMachinesAreOneWorld) {
  const std::string script =
      "env:RANK,env:WORLD_SIZE,env:LOCAL_RANK,env:LOCAL_WORLD_SIZE,env:GROUP_RANK,env:GROUP_WORLD_"
      "SIZE,"
      "env:MASTER_ADDR,env:MASTER_PORT";
  const auto first = agent(0, 2, {script});
  const auto second = agent(1, 2, {script});

  const ChildResult a = first->wait();
  const ChildResult b = second->wait();

  EXPECT_EQ(a.exit_code, 0) << a.err;
  EXPECT_EQ(b.exit_code, 0) << b.err;
  EXPECT_THAT(a.out,
              AllOf(HasSubstr("RANK=0\n"), HasSubstr("RANK=1\n"), HasSubstr("WORLD_SIZE=4\n"),
                    HasSubstr("GROUP_RANK=0\n"), HasSubstr("GROUP_WORLD_SIZE=2\n"),
                    HasSubstr("MASTER_ADDR=127.0.0.1\n")));
  EXPECT_THAT(b.out,
              AllOf(HasSubstr("RANK=2\n"), HasSubstr("RANK=3\n"), HasSubstr("LOCAL_RANK=1\n"),
                    HasSubstr("LOCAL_WORLD_SIZE=2\n"), HasSubstr("GROUP_RANK=1\n")));
  EXPECT_THAT(b.err, HasSubstr("node 1 of 2"));
  const auto port = a.out.substr(a.out.find("MASTER_PORT="), 17);
  EXPECT_THAT(b.out, HasSubstr(port));
}

TEST_F(Nodes, AFailureOnOneMachineEndsAllAndIsNamedOnAll) {
  const std::vector<std::string> scripts{"wait", "wait", "wait", "throw:bad label 11 in sample 42"};
  const auto first = agent(0, 2, scripts);
  const auto second = agent(1, 2, scripts);

  const ChildResult a = first->wait();
  const ChildResult b = second->wait();

  EXPECT_EQ(a.exit_code, 1);
  EXPECT_EQ(b.exit_code, 1);
  for (const ChildResult& result : {a, b}) {
    EXPECT_THAT(result.err,
                AllOf(HasSubstr("error: rank 3 (host "), HasSubstr("bad label 11 in sample 42"),
                      HasSubstr("1 of 4 ranks failed")));
  }
}

TEST_F(Nodes, B032AllMachinesStartAgainTogetherAndSeeOneCount) {
  // The last rank fails once the first machine's have said what they see.
  const std::string first_round = (folder_ / "first").string();
  const std::string second_round = (folder_ / "second").string();
  const std::string count = "env:TORCHELASTIC_RESTART_COUNT,";
  const std::vector<std::string> scripts{
      count + "if-attempt:0,touch:" + first_round + ",if-attempt:1,touch:" + second_round + ",wait",
      "wait", "wait",
      count + "if-attempt:0,until-file:" + first_round +
          ",if-attempt:1,until-file:" + second_round + ",exit:7"};
  const std::vector<std::string> once{"--max-restarts", "1"};
  const auto first = agent(0, 2, scripts, once);
  const auto second = agent(1, 2, scripts, once);

  const ChildResult a = first->wait();
  const ChildResult b = second->wait();

  EXPECT_EQ(a.exit_code, 1) << a.err;
  EXPECT_EQ(b.exit_code, 1) << b.err;
  EXPECT_EQ(a.out, "TORCHELASTIC_RESTART_COUNT=0\nTORCHELASTIC_RESTART_COUNT=1\n");
  EXPECT_EQ(b.out, "TORCHELASTIC_RESTART_COUNT=0\nTORCHELASTIC_RESTART_COUNT=1\n");
  EXPECT_THAT(a.err, HasSubstr("starting all ranks again, restart 1 of 1"));
}

TEST_F(Nodes, B032AKilledAgentIsNoRestartWhereNoneIsAllowed) {
  const std::vector<std::string> scripts{"say:ready,wait"};
  const auto first = agent(0, 2, scripts);
  auto second = agent(1, 2, scripts);
  ASSERT_TRUE(first->wait_for("ready", 40s));
  ASSERT_TRUE(second->wait_for("ready", 40s));

  second->signal(SIGKILL);
  const auto again = agent(1, 2, scripts);
  const ChildResult a = first->wait();
  const ChildResult b = again->wait();

  EXPECT_EQ(a.exit_code, 1);
  EXPECT_EQ(b.exit_code, 1);
  EXPECT_THAT(a.err, HasSubstr("was lost"));
  EXPECT_THAT(b.out, Not(HasSubstr("ready")));
}

TEST_F(Nodes, WhenTheFirstMachinesLauncherIsKilledTheOthersEndToo) {
  const std::vector<std::string> scripts{"say:ready,wait"};
  const auto first = agent(0, 2, scripts);
  const auto second = agent(1, 2, scripts);
  ASSERT_TRUE(first->wait_for("ready", 40s));
  ASSERT_TRUE(second->wait_for("ready", 40s));

  first->signal(SIGKILL);
  const ChildResult b = second->wait();

  EXPECT_EQ(b.exit_code, 1);
  EXPECT_FALSE(b.timed_out);
  EXPECT_THAT(b.err, HasSubstr("the coordinator at 127.0.0.1"));
}

TEST_F(Nodes, B030ASignalToOneLauncherReachesTheRanksOfAll) {
  const std::vector<std::string> scripts{"await-signal"};
  const auto first = agent(0, 2, scripts);
  const auto second = agent(1, 2, scripts);
  ASSERT_TRUE(first->wait_for("ready\nready", 40s));
  ASSERT_TRUE(second->wait_for("ready\nready", 40s));

  second->signal(SIGTERM);
  const ChildResult a = first->wait();
  const ChildResult b = second->wait();

  EXPECT_EQ(a.exit_code, 128 + SIGTERM) << a.err;
  EXPECT_EQ(b.exit_code, 128 + SIGTERM) << b.err;
  EXPECT_THAT(a.out, HasSubstr("got SIGTERM\ngot SIGTERM\n"));
}

TEST_F(Nodes, AnotherSecretIsRefusedAndCounted) {
  const std::vector<std::string> scripts{"exit:0"};
  const auto first = agent(0, 2, scripts);
  const auto stranger = agent(1, 2, scripts, {}, "another secret of 20 bytes");

  const ChildResult refused = stranger->wait();
  const auto second = agent(1, 2, scripts);
  const ChildResult a = first->wait();

  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("its secret or --rdzv-id differs"));
  EXPECT_EQ(a.exit_code, 0) << a.err;
  EXPECT_THAT(a.err, HasSubstr("of strangers at 127.0.0.1"));
  EXPECT_EQ(second->wait().exit_code, 0);
}

TEST_F(Nodes, B033ANodeRankThatJoinsTwiceIsToldWhoWasFirst) {
  const std::vector<std::string> scripts{"exit:0"};
  const auto first = agent(0, 3, scripts);
  const auto second = agent(1, 3, scripts);
  // Whichever of the two comes later is refused.
  const auto twice = agent(1, 3, scripts);
  bool second_is_refused = false;
  ASSERT_TRUE(eventually(40s, [&] {
    second_is_refused = second->wait_for("joined twice", 10ms);
    return second_is_refused || twice->wait_for("joined twice", 10ms);
  }));

  const ChildResult refused = (second_is_refused ? second : twice)->wait();
  Child& other = *(second_is_refused ? twice : second);
  first->signal(SIGTERM);
  other.signal(SIGTERM);
  static_cast<void>(first->wait());
  static_cast<void>(other.wait());

  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("error: node rank 1 joined twice (pid "));
}

TEST_F(Nodes, AProgramThatIsMissingOnOneMachineEndsTheJobOnAll) {
  const auto first = agent(0, 2, {"wait"});
  std::vector<std::string> command{
      YOKE_PROGRAM,       "launch", "--nnodes",        "2",
      "--node-rank",      "1",      "--rdzv-endpoint", text("127.0.0.1:", port_),
      "--rdzv-id",        job_,     "--ranks",         "2",
      "./no-such-program"};
  core::EnvironmentMap variables = core::environment();
  variables["YOKE_SECRET"] = "0123456789abcdef0123";

  const ChildResult b = core::run_child({.command = command, .variables = variables, .limit = 60s});
  const ChildResult a = first->wait();

  EXPECT_EQ(b.exit_code, 2) << b.err;
  EXPECT_EQ(a.exit_code, 2) << a.err;
  EXPECT_THAT(a.err, HasSubstr("no-such-program"));
}

TEST_F(Nodes, NoPlaceToMeetIsAUsageError) {
  const ChildResult result = core::run_child(
      {.command = {YOKE_PROGRAM, "launch", "--nnodes", "2", "--ranks", "1", "true"}, .limit = 30s});

  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--rdzv-endpoint"));
}

}  // namespace
}  // namespace yoke::cli
