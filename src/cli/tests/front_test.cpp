// The front program as its user meets it.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/environment.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"
#include "yoke/device/host.hpp"

namespace yoke::cli {
namespace {

using namespace std::chrono_literals;
using core::ChildResult;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Runs yoke with these words on a machine without GPUs; an empty value unsets a variable.
ChildResult yoke(const std::vector<std::string>& words, const core::EnvironmentMap& set = {}) {
  core::ChildOptions options{.command = {YOKE_PROGRAM}, .limit = 30s};
  options.command.insert(options.command.end(), words.begin(), words.end());
  options.variables = core::environment();
  options.variables->insert_or_assign("CUDA_VISIBLE_DEVICES", "");
  options.variables->erase("OMP_NUM_THREADS");
  for (const auto& [name, value] : set) options.variables->insert_or_assign(name, value);
  return core::run_child(options);
}

std::size_t count_of(const std::string& part, const std::string& whole) {
  std::size_t count = 0;
  for (std::size_t at = whole.find(part); at != std::string::npos; at = whole.find(part, at + 1))
    ++count;
  return count;
}

TEST(Front, HelpNamesTheCommands) {
  const ChildResult result = yoke({"--help"});

  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, AllOf(HasSubstr("usage: yoke COMMAND"), HasSubstr("\n  launch ")));
  EXPECT_EQ(result.err, "");
}

TEST(Front, NoCommandIsAUsageError) {
  const ChildResult result = yoke({});

  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("usage: yoke COMMAND"));
}

TEST(Front, AnUnknownCommandIsNamedWithTheNearest) {
  const ChildResult result = yoke({"lanch", "--ranks", "2"});

  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("'lanch'"), HasSubstr("did you mean launch?")));
}

TEST(Front, TheVersionIsOneLine) {
  EXPECT_THAT(yoke({"--version"}).out, ::testing::MatchesRegex("yoke [0-9.]+\n"));
}

#ifndef YOKE_SANITIZED
TEST(Front, HelpTakesLessThanTwentyMilliseconds) {
  auto fastest = 1000ms;
  for (int i = 0; i < 20; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    static_cast<void>(yoke({"--help"}));
    fastest = std::min(fastest, std::chrono::duration_cast<std::chrono::milliseconds>(
                                    std::chrono::steady_clock::now() - begin));
  }

  EXPECT_LT(fastest, 20ms);
}
#endif

TEST(Launch, B022ArgumentsReachTheProgramByteForByteAndInOrder) {
  const std::string odd = "a b\t\"c\" \\ * $HOME \xff\n;";
  const std::string want = "<--r=16><--mo><0.9><--log><x><--local><3><><--><" + odd + ">";
  std::vector<std::string> words{"printf", "<%s>",    "--r=16", "--mo", "0.9", "--log",
                                 "x",      "--local", "3",      "",     "--",  odd};

  std::vector<std::string> bare{"launch", "--nproc-per-node", "1"};
  bare.insert(bare.end(), words.begin(), words.end());
  std::vector<std::string> dashed{"launch", "--nproc-per-node", "1", "--"};
  dashed.insert(dashed.end(), words.begin(), words.end());

  EXPECT_EQ(yoke(bare).out, want);
  EXPECT_EQ(yoke(dashed).out, want);
}

TEST(Launch, B022AnUnknownOptionIsExitTwoAndItsName) {
  const ChildResult result = yoke({"launch", "--r=16", "true"});

  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("unknown option --r=16"));
}

TEST(Launch, B024WrongCountsAreExitTwoAndQuoted) {
  for (const char* count : {"--work-dir", "GPUS=2", "0"}) {
    const ChildResult result = yoke({"launch", "--nproc-per-node", count, "true"});

    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err,
                AllOf(HasSubstr(std::string("'") + count + "'"), HasSubstr("gpu, cpu, auto")));
  }
}

TEST(Launch, B024GpuWithoutAGpuIsExitThree) {
  const ChildResult result = yoke({"launch", "--nproc-per-node", "gpu", "true"});

  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("no GPU found"));
}

TEST(Launch, B024AutoWithoutAGpuTakesTheCoresAndSaysSo) {
  const ChildResult result = yoke({"launch", "--nproc-per-node", "auto", "echo", "rank"});

  EXPECT_EQ(count_of("rank\n", result.out), static_cast<std::size_t>(device::usable_cores()));
  EXPECT_THAT(result.err, HasSubstr("one rank per core"));
}

TEST(Launch, B025ThreadsAreSharedOutWithOneNoticeThatAValueOfTheUsersSilences) {
  const std::vector<std::string> two{"launch", "--ranks", "2",
                                     "sh",     "-c",      "echo threads=$OMP_NUM_THREADS."};
  const int share = std::max(1, device::usable_cores() / 2);

  const ChildResult unset = yoke(two);
  const ChildResult three = yoke(two, {{"OMP_NUM_THREADS", "3"}});
  const ChildResult alone =
      yoke({"launch", "--ranks", "1", "sh", "-c", "echo threads=$OMP_NUM_THREADS."});

  EXPECT_EQ(count_of(core::text("threads=", share, ".\n"), unset.out), 2U);
  EXPECT_EQ(count_of("OMP_NUM_THREADS", unset.err), 1U);
  EXPECT_EQ(count_of("threads=3.\n", three.out), 2U);
  EXPECT_EQ(three.err, "");
  EXPECT_EQ(alone.out, "threads=.\n");
  EXPECT_EQ(alone.err, "");
}

TEST(Launch, TheNumberOfRanksMayStandInTheEnvironment) {
  EXPECT_EQ(count_of("rank\n", yoke({"launch", "echo", "rank"}, {{"YOKE_RANKS", "3"}}).out), 3U);
  EXPECT_EQ(count_of("rank\n", yoke({"launch", "echo", "rank"}).out), 1U);
  EXPECT_THAT(yoke({"launch", "true"}, {{"YOKE_RANKS", "many"}}).err,
              HasSubstr("YOKE_RANKS 'many'"));
}

TEST(Launch, AProgramThatIsNotThereIsExitTwo) {
  const ChildResult result = yoke({"launch", "./no-such-program"});

  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("launch ./no-such-program: no such program"));
}

TEST(Launch, AnOccupiedPortIsNamedBeforeAnythingStarts) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener, raw, size), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::getsockname(listener, raw, &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));

  const ChildResult result = yoke({"launch", "--master-port", port, "echo", "started"});
  ::close(listener);

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, AllOf(HasSubstr("port " + port), HasSubstr("--master-port")));
}

TEST(Launch, TheFailedRanksCodeIsKeptAndItsNameComesLast) {
  const ChildResult result =
      yoke({"launch", "--ranks", "2", "sh", "-c", "test $RANK = 0 || exit 4; exec sleep 600"});

  EXPECT_EQ(result.exit_code, 4);
  const std::size_t last = result.err.find_last_of('\n', result.err.size() - 2);
  EXPECT_THAT(result.err.substr(last + 1),
              AllOf(HasSubstr("error: rank 1 (host "), HasSubstr("exited with code 4")));
}

TEST(Launch, PrefixesSayWhichRankSpoke) {
  const ChildResult result = yoke({"launch", "--ranks", "2", "--prefix", "sh", "-c",
                                   "echo out $RANK; echo err $RANK >&2; printf end"});

  EXPECT_THAT(result.out,
              AllOf(HasSubstr("[r0] out 0\n"), HasSubstr("[r1] out 1\n"), HasSubstr("[r1] end\n")));
  EXPECT_THAT(result.err, AllOf(HasSubstr("[r0] err 0\n"), HasSubstr("[r1] err 1\n")));
}

TEST(Launch, AsOneOfSeveralTasksOfAMachineItIsRefused) {
  const ChildResult result =
      yoke({"launch", "--ranks", "2", "echo", "started"}, {{"SLURM_PROCID", "1"},
                                                           {"SLURM_NTASKS", "2"},
                                                           {"SLURM_STEP_ID", "0"},
                                                           {"SLURM_JOB_ID", "7"},
                                                           {"SLURM_LOCALID", "1"},
                                                           {"SLURM_NODEID", "0"},
                                                           {"SLURM_NNODES", "1"}});

  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, AllOf(HasSubstr("rank 1 of 2"), HasSubstr("slurm")));
}

TEST(Launch, AnMpSpawnScriptIsToldWhatToUse) {
  const auto script =
      std::filesystem::temp_directory_path() / core::text("spawn-", ::getpid(), ".py");
  core::write_atomically(script, "import torch.multiprocessing as mp\nmp.spawn(run, nprocs=2)\n");

  const ChildResult result = yoke({"launch", "--ranks", "2", script.string()});

  std::filesystem::remove(script);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("mp.spawn"), HasSubstr("yoke launch --ranks 1")));
}

TEST(Launch, TorchrunsVariablesChooseTheRanks) {
  const ChildResult result = yoke({"launch", "sh", "-c", "echo $RANK/$WORLD_SIZE"},
                                  {{"PET_NPROC_PER_NODE", "2"}, {"PET_MAX_RESTARTS", "3"}});

  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("0/2\n"), HasSubstr("1/2\n")));
}

TEST(Launch, AJobFileIsWrittenAndNothingStarted) {
  const ChildResult slurm = yoke({"launch", "--emit", "slurm", "--nnodes", "2", "--nproc-per-node",
                                  "8", "--partition", "gpu", "--", "./train", "--lr", "0.1"});
  const ChildResult no_count = yoke({"launch", "--emit", "slurm", "--", "./train"});

  EXPECT_EQ(slurm.exit_code, 0) << slurm.err;
  EXPECT_THAT(slurm.out,
              AllOf(HasSubstr("#SBATCH --nodes=2\n"), HasSubstr("#SBATCH --partition=gpu\n")));
  EXPECT_EQ(no_count.exit_code, 2);
  EXPECT_THAT(no_count.err, HasSubstr("--nproc-per-node"));
}

TEST(Launch, ALeftoverRankOfAProfileIsNoHindrance) {
  const ChildResult result =
      yoke({"launch", "--ranks", "2", "sh", "-c", "echo $RANK/$WORLD_SIZE"}, {{"RANK", "7"}});

  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("0/2\n"), HasSubstr("1/2\n")));
}

}  // namespace
}  // namespace yoke::cli
