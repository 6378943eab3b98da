#include "yoke/launch/supervise.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job_processes.hpp"
#include "supervise_scene.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/telemetry.hpp"
#include "yoke/core/text.hpp"

namespace yoke::launch {
namespace {

using namespace std::chrono_literals;
using core::Child;
using core::ChildResult;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr const char* kRankActor = YOKE_RANK_ACTOR;
constexpr const char* kLaunchActor = YOKE_LAUNCH_ACTOR;

using Supervise = SuperviseScene;

TEST_F(Supervise, AllRanksEndingWellIsZero) {
  const Outcome outcome = play({"exit:0", "exit:0", "exit:0"});

  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_FALSE(outcome.root_cause);
}

TEST_F(Supervise, B026AFailedRankEndsTheOthersAndIsNamedWithCodeAndTime) {
  const Outcome outcome = play({"wait", "exit:7", "wait"}, {.grace = 3s});

  EXPECT_EQ(outcome.exit_code, 1);
  ASSERT_TRUE(outcome.root_cause);
  EXPECT_EQ(outcome.root_cause->rank, 1);
  EXPECT_EQ(outcome.root_cause->exit_code, 7);
  EXPECT_THAT(outcome.stopped, ElementsAre(0, 2));
  EXPECT_LT(took_, 5s);
  EXPECT_THAT(last_line(),
              AllOf(HasSubstr("rank 1 (host "), HasSubstr("exited with code 7 after ")));
}

TEST_F(Supervise, B026RanksThatIgnoreSigtermAreKilledAfterTheGracePeriod) {
  const Outcome outcome =
      play({"ignore-term,wait", "exit:7", "ignore-term,wait"}, {.grace = 500ms});

  EXPECT_EQ(outcome.exit_code, 1);
  ASSERT_TRUE(outcome.root_cause);
  EXPECT_EQ(outcome.root_cause->rank, 1);
  EXPECT_GE(took_, 500ms);
  EXPECT_LT(took_, 2500ms + 500ms);
}

TEST_F(Supervise, B026ARankThatEndedWellBeforeDoesNotHideTheFailure) {
  const Outcome outcome = play({"exit:0", "exit:7", "wait"});

  EXPECT_EQ(outcome.exit_code, 1);
  ASSERT_TRUE(outcome.root_cause);
  EXPECT_EQ(outcome.root_cause->exit_code, 7);
  EXPECT_THAT(outcome.stopped, ElementsAre(2));
}

TEST_F(Supervise, B027TheErrorThatCameFirstIsTheCauseAndLostContactAFollowUp) {
  const Outcome outcome = play({"serve:1", "connect,throw:bad label 11 in sample 42"});

  ASSERT_TRUE(outcome.root_cause);
  EXPECT_EQ(outcome.root_cause->rank, 1);
  EXPECT_EQ(outcome.root_cause->message, "bad label 11 in sample 42");
  ASSERT_EQ(outcome.follow_ups.size(), 1U);
  EXPECT_EQ(outcome.follow_ups[0].rank, 0);
  EXPECT_EQ(outcome.follow_ups[0].code, "peer_lost");
  EXPECT_THAT(last_line(),
              ::testing::MatchesRegex(
                  "error: rank 1 \\(host .+\\): bad label 11 in sample 42 / look at the sample"));
}

TEST_F(Supervise, B027TheCauseIsFoundAlsoWhenItsPeerReportsFirst) {
  const Outcome outcome =
      play({"serve:2", "connect,connect,hang-up,until-closed,throw:bad label 11 in sample 42"});

  ASSERT_TRUE(outcome.root_cause);
  EXPECT_EQ(outcome.root_cause->rank, 1);
  ASSERT_EQ(outcome.follow_ups.size(), 1U);
  EXPECT_LT(outcome.follow_ups[0].seconds, outcome.root_cause->seconds);
}

TEST_F(Supervise, B027SignalsAreNamed) {
  const Outcome segv = play({"kill:11", "wait"});
  const std::string segv_line = last_line();
  const Outcome killed = play({"kill:9", "wait"});
  const std::string killed_line = last_line();

  EXPECT_EQ(segv.exit_code, 1);
  EXPECT_EQ(killed.exit_code, 1);
  EXPECT_THAT(segv_line, AllOf(HasSubstr("rank 0"), HasSubstr("killed by SIGSEGV")));
  EXPECT_THAT(killed_line,
              AllOf(HasSubstr("killed by SIGKILL"), HasSubstr("possibly out of memory")));
}

TEST_F(Supervise, B027TheFailureIsWrittenForMachinesToo) {
  const auto file = std::filesystem::temp_directory_path() / (job_ + ".json");

  play({"serve:1", "connect,throw:bad label 11 in sample 42"}, {.failure_file = file});

  const core::Json whole = core::parse_json(core::read_file(file), file.string());
  std::filesystem::remove(file);
  EXPECT_EQ(whole["version"], 1);
  EXPECT_EQ(whole["exit_code"], 1);
  EXPECT_EQ(whole["root_cause"]["rank"], 1);
  EXPECT_EQ(whole["root_cause"]["code"], "corrupt_data");
  EXPECT_EQ(whole["root_cause"]["message"], "bad label 11 in sample 42");
  EXPECT_EQ(whole["root_cause"]["hint"], "look at the sample");
  EXPECT_EQ(whole["follow_ups"][0]["rank"], 0);
}

TEST_F(Supervise, ARankThatIsKilledIsNamedWithTheStepAndCollectiveInWhichItStood) {
  const Outcome outcome = play({"wait", "reduce:12,kill:9"});

  ASSERT_TRUE(outcome.root_cause);
  EXPECT_EQ(outcome.root_cause->last_step, "after step 12, in all-reduce #3 (1.0 MiB)");
  EXPECT_THAT(last_line(), HasSubstr("after step 12, in all-reduce #3 (1.0 MiB)"));
  EXPECT_FALSE(std::filesystem::exists(records()));
}

TEST_F(Supervise, TheCodesThatSchedulersReadAreKept) {
  EXPECT_EQ(play({"exit:2"}).exit_code, 2);
  EXPECT_EQ(play({"exit:3"}).exit_code, 3);
  EXPECT_EQ(play({"exit:4"}).exit_code, 4);
  EXPECT_EQ(play({"exit:5"}).exit_code, 1);
}

TEST_F(Supervise, ARankThatSavedOnItsOwnSignalIsNoFailure) {
  const Outcome outcome = play({"exit:138", "exit:138"});

  EXPECT_EQ(outcome.exit_code, 128 + SIGUSR1);
  EXPECT_FALSE(outcome.root_cause);
}

TEST_F(Supervise, B026ARankThatEndsAsIfBySignalWhileOthersWorkEndsTheJobAndIsNamed) {
  const Outcome outcome = play({"wait", "exit:143"}, {.grace = 1s});

  EXPECT_EQ(outcome.exit_code, 1);
  ASSERT_TRUE(outcome.root_cause);
  EXPECT_EQ(outcome.root_cause->rank, 1);
  EXPECT_EQ(outcome.root_cause->exit_code, 143);
  EXPECT_LT(took_, 10s);
}

TEST_F(Supervise, TheTimeLimitEndsTheJobAndSaysSo) {
  const Outcome outcome = play({"wait", "wait"}, {.grace = 1s, .max_time = 200ms});

  EXPECT_EQ(outcome.exit_code, 1);
  ASSERT_TRUE(outcome.root_cause);
  EXPECT_EQ(outcome.root_cause->code, "timeout");
  EXPECT_THAT(last_line(), HasSubstr("--max-time of 0.2 s"));
}

TEST_F(Supervise, WhatRanksLeaveBehindIsEnded) {
  const Outcome outcome = play({"grandchild:stubborn,exit:0"}, {.grace = 200ms});

  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_GE(took_, 200ms);
  EXPECT_THAT(words(), HasSubstr("ended what the ranks had left behind: 1 process"));
}

TEST_F(Supervise, TheSweepAfterAKilledGuardianSparesWhatOthersStartMeanwhile) {
  const std::string flag = (std::filesystem::temp_directory_path() / job_).string();
  Child bystander({.command = {kRankActor, "await-signal:on,grandchild,touch:" + flag + ",wait"},
                   .limit = 60s});
  ASSERT_TRUE(bystander.wait_for("ready", 10s));

  const Outcome outcome = play({core::text("grandchild:stubborn,send:", bystander.pid(), ":",
                                           SIGUSR1, ",until-file:", flag, ",kill-guardian,wait"),
                                "wait"},
                               {.max_time = 30s});

  EXPECT_THAT(last_line(), HasSubstr("the guardian"));
  const auto left = core::descendants(::getpid());  // the bystander and what it started
  EXPECT_EQ(left.size(), 2U);
  for (const core::ProcessId& process : left) core::send_signal(process, SIGKILL);
  std::filesystem::remove(flag);
}

TEST_F(Supervise, AfterASignalZeroMeansDoneWhereTheProgramTellsTheTwoApart) {
  const std::string flag = (std::filesystem::temp_directory_path() / job_).string();
  const auto code_after_sigterm = [&](const std::string& end, bool zero_is_done) {
    const Outcome outcome = play({core::text("block,until-file:", flag, ",send:", ::getpid(), ":",
                                             SIGTERM, ",await-signal:0"),
                                  "block,touch:" + flag + "," + end},
                                 {.max_time = 30s, .zero_is_done = zero_is_done});
    std::filesystem::remove(flag);
    return outcome.exit_code;
  };

  EXPECT_EQ(code_after_sigterm("await-signal:0", true), 0);
  EXPECT_EQ(code_after_sigterm("await-signal", true), 128 + SIGTERM);
  EXPECT_EQ(code_after_sigterm("await-signal:0", false), 128 + SIGTERM);
}

TEST_F(Supervise, AProgramThatIsNotThereIsNamedBeforeAnythingStarts) {
  try {
    static_cast<void>(supervise({.command = {"./no-such-program"}, .ranks = 2}));
    FAIL() << "started a program that is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_THAT(error.message(), HasSubstr("./no-such-program"));
  }
}

TEST_F(Supervise, AFileThatIsNoProgramIsNamed) {
  const auto file = std::filesystem::temp_directory_path() / (job_ + ".bin");
  core::write_atomically(file, "\177ELF but no more");
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);

  const Outcome outcome = supervise({.command = {file.string()}, .ranks = 2, .job_id = job_});

  std::filesystem::remove(file);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(last_line(), AllOf(HasSubstr(file.string()), HasSubstr("xec format error")));
}

TEST_F(Supervise, ThePortOfTheRanksIsBelowThoseOfOutgoingCalls) {
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  int low = 0;
  range >> low;
  StorePort store = reserve_store_port(std::nullopt, false);

  EXPECT_LT(store.port, low);
  EXPECT_THROW(static_cast<void>(reserve_store_port(1, false, "no address")), Error);
}

TEST_F(Supervise, AnOccupiedPortIsNamed) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const int port = ntohs(address.sin_port);

  std::string message;
  try {
    play({"exit:0"}, {.port = port});
  } catch (const Error& error) {
    message = error.message();
  }
  ::close(listener);

  EXPECT_THAT(message, AllOf(HasSubstr(core::text("port ", port)),
                             HasSubstr("another program listens there")));
}

/// A launcher in a process of its own, to be killed or sent signals.
class Launcher : public ::testing::Test {
 protected:
  void SetUp() override {
    job_ = core::text("test-", ::getpid(), "-",
                      ::testing::UnitTest::GetInstance()->current_test_info()->name());
  }
  void TearDown() override {
    EXPECT_TRUE(eventually(10s, [&] { return processes_of_job(job_).empty(); }))
        << "left behind by " << job_;
  }

  std::unique_ptr<Child> start(const std::vector<std::string>& scripts, int grace_ms = 1000) const {
    std::vector<std::string> command{kLaunchActor, std::to_string(scripts.size()), job_,
                                     std::to_string(grace_ms), kRankActor};
    command.insert(command.end(), scripts.begin(), scripts.end());
    return std::make_unique<Child>(core::ChildOptions{.command = command, .limit = 30s});
  }

  /// Whether all of the job's processes are running, so that a kill meets them.
  [[nodiscard]] bool all_there(std::size_t count) const {
    return eventually(10s, [&] { return processes_of_job(job_).size() >= count; });
  }

  std::string job_;
};

TEST_F(Launcher, NothingOutlivesALauncherThatIsKilled) {
  const auto launcher =
      start({"grandchild,say:ready,wait", "reduce:1,ignore-term,say:recorded,wait"}, 500);
  ASSERT_TRUE(launcher->wait_for("ready", 10s));
  ASSERT_TRUE(launcher->wait_for("recorded", 10s));
  ASSERT_TRUE(all_there(3));

  const auto records =
      core::telemetry_file(core::telemetry_root(core::environment()), job_, 0).parent_path();
  ASSERT_TRUE(std::filesystem::exists(records));

  launcher->signal(SIGKILL);

  EXPECT_TRUE(eventually(10s, [&] { return processes_of_job(job_).empty(); }));
  EXPECT_TRUE(eventually(5s, [&] { return !std::filesystem::exists(records); }));
}

TEST_F(Launcher, NothingOutlivesALauncherThatIsKilledWhileItStartsTheRanks) {
  const std::vector<std::string> scripts(32, "say:ready,wait");
  const auto launcher = start(scripts, 500);
  ASSERT_TRUE(launcher->wait_for("ready", 10s));

  launcher->signal(SIGKILL);

  EXPECT_TRUE(eventually(5s, [&] { return processes_of_job(job_).empty(); }));
}

TEST_F(Launcher, WhatALeftProcessStartsWhileItIsEndedEndsToo) {
  const std::string mark = (std::filesystem::temp_directory_path() / job_).string();
  const std::string script =
      core::text("(trap 'sleep 600 & exit' TERM; : >", mark,
                 "; while :; do sleep 0.05; done) & until test -e ", mark, "; do sleep 0.01; done");

  // Well below the grace period.
  const ChildResult result = core::run_child(
      {.command = {kLaunchActor, "1", job_, "20000", "sh", "-c", script}, .limit = 10s});
  std::filesystem::remove(mark);

  EXPECT_TRUE(result.succeeded()) << result.err;
  EXPECT_TRUE(processes_of_job(job_).empty());
}

TEST_F(Launcher, AStubbornGrandchildInItsOwnSessionDoesNotOutliveAKilledLauncher) {
  const auto launcher = start({"grandchild:stubborn,wait"}, 300);
  ASSERT_TRUE(launcher->wait_for("grandchild ", 10s));
  ASSERT_TRUE(all_there(2));

  launcher->signal(SIGKILL);

  EXPECT_TRUE(eventually(10s, [&] { return processes_of_job(job_).empty(); }));
}

TEST_F(Launcher, NothingOutlivesAGuardianThatIsKilled) {
  const auto launcher = start({"grandchild:stubborn,wait", "wait"}, 300);
  ASSERT_TRUE(launcher->wait_for("grandchild ", 10s));
  ASSERT_TRUE(all_there(3));
  const auto tree = core::descendants(launcher->pid());
  const auto guardian = core::identify(tree.at(0).pid);

  ASSERT_TRUE(core::send_signal(*guardian, SIGKILL));
  const ChildResult result = launcher->wait();

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("the guardian"));
  EXPECT_TRUE(processes_of_job(job_).empty());
}

TEST_F(Launcher, B029AStopBySigtermIs143WhateverTheRanksReturn) {
  const auto saved = start({"await-signal", "await-signal:0"});
  ASSERT_TRUE(saved->wait_for("ready\nready", 10s));

  saved->signal(SIGTERM);
  const ChildResult result = saved->wait();

  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_THAT(result.out, HasSubstr("got SIGTERM\ngot SIGTERM"));
  EXPECT_THAT(result.err, HasSubstr("stopped by SIGTERM"));
}

TEST_F(Launcher, B029RanksWithoutAHandlerDieOfTheSignalAndThatIsNoFailure) {
  const auto launcher = start({"say:ready,wait", "say:ready,wait"});
  ASSERT_TRUE(launcher->wait_for("ready\nready", 10s));

  launcher->signal(SIGINT);
  const ChildResult result = launcher->wait();

  EXPECT_EQ(result.exit_code, 128 + SIGINT);
  EXPECT_THAT(result.err, ::testing::Not(HasSubstr("error:")));
}

TEST_F(Launcher, AnErrorWhileSavingAfterASignalIsAFailure) {
  const auto launcher =
      start({"await-signal", "await-signal:on,throw:write model.pt: no space left"});
  ASSERT_TRUE(launcher->wait_for("ready\nready", 10s));

  launcher->signal(SIGTERM);
  const ChildResult result = launcher->wait();

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("): write model.pt: no space left"));
}

TEST_F(Launcher, B030UserSignalsReachEveryRank) {
  for (const int signal : {SIGUSR1, SIGUSR2, SIGHUP}) {
    const auto launcher = start({"await-signal", "await-signal", "await-signal"});
    ASSERT_TRUE(launcher->wait_for("ready\nready\nready", 10s));

    launcher->signal(signal);
    const ChildResult result = launcher->wait();

    const std::string got = "got " + core::signal_name(signal) + "\n";
    EXPECT_THAT(result.out, HasSubstr(got + got + got));
    EXPECT_EQ(result.exit_code, 128 + signal);
  }
}

TEST_F(Launcher, B116AProgramBehindAShellHearsTheStopAndMaySave) {
  const std::string saved = (std::filesystem::temp_directory_path() / job_).string();
  // The shell is the rank, and dies of the signal without passing it on.
  const std::string line =
      core::text(kRankActor, " await-signal:on,touch:", saved, ",exit:143; echo the shell goes on");
  Child launcher({.command = {kLaunchActor, "1", job_, "8000", "sh", "-c", line}, .limit = 60s});
  ASSERT_TRUE(launcher.wait_for("ready", 20s));

  launcher.signal(SIGTERM);
  const ChildResult result = launcher.wait();

  EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
  EXPECT_TRUE(std::filesystem::remove(saved));
}

TEST_F(Launcher, ASecondInterruptKills) {
  const auto launcher = start(
      {"ignore-term,await-signal:0", "grandchild:stubborn,ignore-term,say:recorded,wait"}, 20'000);
  ASSERT_TRUE(launcher->wait_for("ready", 10s));
  ASSERT_TRUE(launcher->wait_for("recorded", 10s));
  const auto begin = Clock::now();

  launcher->signal(SIGINT);
  ASSERT_TRUE(launcher->wait_for("got SIGINT", 10s));
  launcher->signal(SIGINT);
  const ChildResult result = launcher->wait();

  EXPECT_EQ(result.exit_code, 128 + SIGINT);
  EXPECT_LT(Clock::now() - begin, 10s);
}

TEST(RunSelf, StartsThisProgramOncePerRank) {
  const ChildResult result =
      core::run_child({.command = {kRankActor, "self:3", "env:RANK", "env:RANK,env:MASTER_ADDR",
                                   "env:RANK,env:TORCHELASTIC_RESTART_COUNT"}});

  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("RANK=0\n"), HasSubstr("RANK=1\n"), HasSubstr("RANK=2\n"),
                                HasSubstr("MASTER_ADDR=127.0.0.1\n"),
                                HasSubstr("TORCHELASTIC_RESTART_COUNT=0\n")));
}

TEST(RunSelf, AllRanksHearWhenTheUserStartedTheProgram) {
  const auto now_ns = [] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  const auto before = now_ns();

  const ChildResult result =
      core::run_child({.command = {kRankActor, "self:2", "env:YOKE_START_TIME"}});

  const auto lines = core::split(core::trimmed(result.out), '\n');
  ASSERT_EQ(lines.size(), 2U) << result.out << result.err;
  EXPECT_EQ(lines[0], lines[1]);
  const auto started = core::parse_integer(core::split(lines[0], '=').at(1));
  ASSERT_TRUE(started);
  constexpr std::int64_t kTick = 20'000'000;  // the kernel counts in 10 ms
  EXPECT_GT(*started, before - kTick);
  EXPECT_LT(*started, now_ns());
}

TEST(RunSelf, AnOuterStartTimeStays) {
  core::EnvironmentMap variables = core::environment();
  variables["YOKE_START_TIME"] = "12345678901234";

  const ChildResult result = core::run_child(
      {.command = {kRankActor, "self:2", "env:YOKE_START_TIME"}, .variables = variables});

  EXPECT_EQ(result.out, "YOKE_START_TIME=12345678901234\nYOKE_START_TIME=12345678901234\n");
}

TEST(RunSelf, OneRankStartsNoChild) {
  core::EnvironmentMap variables = core::environment();
  variables["YOKE_RANKS"] = "1";

  const ChildResult result = core::run_child(
      {.command = {kRankActor, "self:3", "env:RANK,env:YOKE_JOB_ID"}, .variables = variables});

  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "RANK=(not set)\nYOKE_JOB_ID=(not set)\n");
}

TEST(RunSelf, StartsAgainAsOftenAsTheVariableSays) {
  core::EnvironmentMap variables = core::environment();
  variables["YOKE_MAX_RESTARTS"] = "1";

  const ChildResult again = core::run_child(
      {.command = {kRankActor, "self:1", "env:TORCHELASTIC_RESTART_COUNT,if-attempt:0,exit:7"},
       .variables = variables});
  variables["YOKE_MAX_RESTARTS"] = "often";
  const ChildResult wrong =
      core::run_child({.command = {kRankActor, "self:2", "say:started"}, .variables = variables});

  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.out, "TORCHELASTIC_RESTART_COUNT=0\nTORCHELASTIC_RESTART_COUNT=1\n");
  EXPECT_FALSE(wrong.succeeded());
  EXPECT_THAT(wrong.err, HasSubstr("YOKE_MAX_RESTARTS 'often'"));
  EXPECT_EQ(wrong.out, "");
}

TEST(RunSelf, ARankOfAnotherLauncherGoesOnItself) {
  core::EnvironmentMap variables = core::environment();
  variables.insert({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}});

  const ChildResult result = core::run_child(
      {.command = {kRankActor, "self:3", "say:zero", "say:one"}, .variables = variables});

  EXPECT_EQ(result.out, "one\n");
}

TEST(RunSelf, TheFirstErrorOfARankReachesTheParentWhole) {
  const ChildResult result = core::run_child(
      {.command = {kRankActor, "self:2", "wait", "throw:bad label 11 in sample 42"}});

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("bad label 11 in sample 42 / look at the sample\n"));
}

}  // namespace
}  // namespace yoke::launch
