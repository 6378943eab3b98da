#include "launch_options.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spawn_script.hpp"
#include "yoke/core/error.hpp"

namespace yoke::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Words = std::vector<std::string>;

std::string refusal(const Words& words) {
  try {
    static_cast<void>(parse_launch(words));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.what();
  }
  ADD_FAILURE() << "was taken";
  return {};
}

TEST(LaunchOptions, B022WhatFollowsTheProgramIsItsOwn) {
  const Words own{"./train", "--r=16", "--mo", "0.9", "--log", "x", "--local", "3", "--", "-m"};
  Words bare{"--nproc-per-node", "1"};
  bare.insert(bare.end(), own.begin(), own.end());
  Words dashed{"--nproc-per-node=1", "--"};
  dashed.insert(dashed.end(), own.begin(), own.end());

  EXPECT_EQ(parse_launch(bare).options.command, own);
  EXPECT_EQ(parse_launch(dashed).options.command, own);
  EXPECT_EQ(parse_launch(dashed).ranks, "1");
}

TEST(LaunchOptions, AProgramMayHaveANameThatLooksLikeAnOption) {
  EXPECT_THAT(parse_launch({"--", "--prefix", "--help"}).options.command,
              ElementsAre("--prefix", "--help"));
  EXPECT_THAT(parse_launch({"-"}).options.command, ElementsAre("-"));
}

TEST(LaunchOptions, B022AnUnknownOptionBeforeTheProgramIsNamed) {
  EXPECT_THAT(refusal({"--r=16", "./train"}), HasSubstr("unknown option --r=16"));
  EXPECT_THAT(refusal({"--max-tim", "3", "./train"}),
              AllOf(HasSubstr("--max-tim"), HasSubstr("did you mean --max-time?")));
  EXPECT_THAT(refusal({"-n", "2", "./train"}), HasSubstr("unknown option -n"));
}

TEST(LaunchOptions, TorchrunsSpellingIsTaken) {
  const LaunchRequest request = parse_launch(
      {"--standalone", "--nnodes=1", "--nproc_per_node", "gpu", "--no-python", "a.py"});

  EXPECT_EQ(request.ranks, "gpu");
  EXPECT_THAT(request.options.command, ElementsAre("a.py"));
}

TEST(LaunchOptions, TorchrunsMachinesAreTaken) {
  const LaunchRequest request =
      parse_launch({"--nnodes=2:4", "--node-rank", "1", "--rdzv-backend=c10d", "--rdzv-endpoint",
                    "head:29500", "--rdzv-id", "j7", "--rdzv-conf",
                    "join_timeout=60,last_call_timeout=3,keep_alive_interval=2", "--max-restarts",
                    "3", "--role", "trainer", "--local-addr", "10.0.0.2", "./train"});

  EXPECT_EQ(request.nodes.fewest, 2);
  EXPECT_EQ(request.nodes.most, 4);
  EXPECT_EQ(request.nodes.node_rank, 1);
  EXPECT_EQ(request.nodes.endpoint_host, "head");
  EXPECT_EQ(request.nodes.endpoint_port, 29500);
  EXPECT_EQ(request.nodes.join_timeout, 60s);
  EXPECT_EQ(request.nodes.last_call, 3s);
  EXPECT_EQ(request.nodes.lost_after, 6s);
  EXPECT_EQ(request.nodes.own_address, "10.0.0.2");
  EXPECT_EQ(request.options.job_id, "j7");
  EXPECT_EQ(request.options.restart.limit, 3);
  EXPECT_EQ(request.options.role, "trainer");
}

TEST(LaunchOptions, TorchrunsVariablesAreTakenAndFlagsWin) {
  const core::EnvironmentMap variables{
      {"PET_NPROC_PER_NODE", "2"}, {"PET_NNODES", "3"},         {"PET_NODE_RANK", "2"},
      {"PET_MASTER_ADDR", "head"}, {"PET_MASTER_PORT", "1234"}, {"PET_MAX_RESTARTS", "5"},
      {"PET_RDZV_ID", "none"},     {"PET_LOG_DIR", "/logs"},    {"PET_GRACE", "100"}};

  const LaunchRequest request = parse_launch({"--max-restarts", "1", "./train"}, variables);

  EXPECT_EQ(request.ranks, "2");
  EXPECT_EQ(request.ranks_option, "PET_NPROC_PER_NODE");
  EXPECT_EQ(request.nodes.most, 3);
  EXPECT_EQ(request.nodes.node_rank, 2);
  EXPECT_EQ(request.nodes.master_address, "head");
  EXPECT_EQ(request.nodes.master_port, 1234);
  EXPECT_EQ(request.options.restart.limit, 1);
  EXPECT_EQ(request.options.job_id, "");
  EXPECT_EQ(request.options.output.folder, "/logs");
  EXPECT_EQ(request.options.grace, 8s);  // ours, not torchrun's
}

TEST(LaunchOptions, AWrongVariableIsNamed) {
  try {
    static_cast<void>(parse_launch({"./train"}, {{"PET_NNODES", "two"}}));
    FAIL() << "was taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("PET_NNODES 'two'"));
  }
}

TEST(LaunchOptions, OutputIsChosenAsByTorchrun) {
  const LaunchRequest request =
      parse_launch({"--log-dir", "logs", "-r", "0:1", "--tee=3", "--local-ranks-filter", "0",
                    "--show", "0,8-9", "./train"});

  EXPECT_EQ(request.options.output.folder, "logs");
  EXPECT_TRUE(request.options.output.redirects.has(0, launch::Streams::out));
  EXPECT_TRUE(request.options.output.tee.has(5, launch::Streams::err));
  EXPECT_THAT(*request.options.output.local_filter, ElementsAre(0));
  EXPECT_THAT(*request.options.output.show, ElementsAre(0, 8, 9));
}

TEST(LaunchOptions, MachinesOfAListAreToldTheOptionsThatHoldForAll) {
  const LaunchRequest request =
      parse_launch({"--hosts", "a,b", "--ssh=rsh", "--grace", "3", "--prefix", "--rdzv-endpoint",
                    "a:1", "train.py", "--grace", "9"});

  EXPECT_THAT(request.own_words, ElementsAre("--grace", "3", "--prefix"));
  EXPECT_EQ(request.hosts.list, "a,b");
  EXPECT_EQ(request.hosts.shell, "rsh");
}

TEST(LaunchOptions, ACallInAnImageIsTheSameCallAndNoValueIsAnArgument) {
  const LaunchRequest request = parse_launch(
      {"--ranks", "2", "--image", "v2.9", "--prefix", "--", "./train", "--image", "x"});

  const std::vector<std::string> words =
      image_run_words(request, /*with_cards=*/true,
                      {{"YOKE_SECRET", "0123"}, {"HOME", "/root"}, {"PET_ROLE", "a"}});

  EXPECT_THAT(words, ElementsAre("run", "-i", "--gpus", "all", "-e", "PET_ROLE", "-e",
                                 "YOKE_SECRET", "v2.9", "--", "yoke", "launch", "--ranks", "2",
                                 "--prefix", "--", "./train", "--image", "x"));
}

TEST(LaunchOptions, HangsAreWatchedForUnlessSwitchedOff) {
  EXPECT_EQ(parse_launch({"x"}).options.hang->limit, 20s);
  EXPECT_EQ(parse_launch({"--hang-timeout", "5", "x"}).options.hang->limit, 5s);
  EXPECT_FALSE(parse_launch({"--hang-timeout", "0", "x"}).options.hang);
  EXPECT_TRUE(parse_launch({"--on-hang", "stop", "x"}).options.stop_on_hang);
}

TEST(SpawnScript, IsToldFromOneThatJoinsALauncher) {
  EXPECT_TRUE(
      starts_its_own_ranks("import torch.multiprocessing as mp\nmp.spawn(run, nprocs=2)\n"));
  EXPECT_FALSE(starts_its_own_ranks("# mp.spawn(run)\nprint(1)\n"));
  EXPECT_FALSE(starts_its_own_ranks("rank = os.environ['LOCAL_RANK']\nmp.spawn(loader)\n"));
}

TEST(LaunchOptions, PythonIsPutBeforeScriptsAndModules) {
  EXPECT_THAT(parse_launch({"train.py", "--lr", "1"}).options.command,
              ElementsAre("python3", "-u", "train.py", "--lr", "1"));
  EXPECT_THAT(parse_launch({"-m", "pkg.train", "-m", "x"}).options.command,
              ElementsAre("python3", "-u", "-m", "pkg.train", "-m", "x"));
  EXPECT_THAT(parse_launch({"python", "train.py"}).options.command,
              ElementsAre("python", "train.py"));
}

TEST(LaunchOptions, ValuesReachTheLauncher) {
  const LaunchRequest request = parse_launch(
      {"--master-port", "4711", "--max-time=90", "--grace", "0.25", "--signal-grace", "60",
       "--prefix", "--job-id", "a1", "--failure-file", "f.json", "--ranks", "3", "./train"});

  EXPECT_EQ(request.options.port, 4711);
  EXPECT_EQ(request.options.max_time, 90s);
  EXPECT_EQ(request.options.grace, 250ms);
  EXPECT_EQ(request.options.signal_grace, 60s);
  EXPECT_TRUE(request.options.output.prefix);
  EXPECT_EQ(request.options.job_id, "a1");
  EXPECT_EQ(request.options.failure_file, "f.json");
  EXPECT_EQ(request.ranks, "3");
  EXPECT_EQ(request.ranks_option, "--ranks");
}

TEST(LaunchOptions, PortZeroIsAFreeOne) {
  EXPECT_FALSE(parse_launch({"--master-port", "0", "./train"}).options.port);
}

TEST(LaunchOptions, AWrongValueIsQuoted) {
  EXPECT_THAT(refusal({"--master-port", "70000", "x"}), HasSubstr("'70000'"));
  EXPECT_THAT(refusal({"--master-port", "http", "x"}), HasSubstr("'http'"));
  for (const char* seconds : {"-1", "soon", "nan", "inf", "5s", ""})
    EXPECT_THAT(refusal({"--grace", seconds, "x"}), HasSubstr(std::string("'") + seconds + "'"));
  EXPECT_THAT(refusal({"--job-id", "a/b", "x"}), HasSubstr("'a/b'"));
  for (const char* nodes : {"0", "two", "3:2", "1:", ":2", "-1"})
    EXPECT_THAT(refusal({"--nnodes", nodes, "x"}), HasSubstr(std::string("'") + nodes + "'"));
  EXPECT_THAT(refusal({"--tee", "9", "x"}), HasSubstr("'9'"));
  EXPECT_THAT(refusal({"--show", "a", "x"}), HasSubstr("'a'"));
  EXPECT_THAT(refusal({"--rdzv-backend", "etcd-v2", "x"}), HasSubstr("'etcd-v2'"));
  EXPECT_THAT(refusal({"--rdzv-conf", "keep_alive_interval=0", "x"}), HasSubstr("within a second"));
  EXPECT_THAT(refusal({"--rdzv-endpoint", "h:x", "x"}), HasSubstr("'x'"));
  EXPECT_THAT(refusal({"--emit", "lsf", "x"}), HasSubstr("'lsf'"));
  EXPECT_THAT(refusal({"--on-hang", "kill", "x"}), HasSubstr("'kill'"));
  EXPECT_THAT(refusal({"--ranks=", "x"}), HasSubstr("empty value"));
  EXPECT_THAT(refusal({"--ranks"}), HasSubstr("--ranks needs a value"));
}

TEST(LaunchOptions, AProgramIsNeeded) {
  EXPECT_THAT(refusal({}), HasSubstr("no program given"));
  EXPECT_THAT(refusal({"--ranks", "2", "--"}), HasSubstr("no program given"));
  EXPECT_THAT(refusal({"-m"}), HasSubstr("-m without a module"));
}

TEST(LaunchOptions, HelpNeedsNoProgram) { EXPECT_TRUE(parse_launch({"--help"}).help); }

}  // namespace
}  // namespace yoke::cli
