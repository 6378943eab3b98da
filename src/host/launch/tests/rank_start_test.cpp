#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "line_relay.hpp"
#include "rank_environment.hpp"
#include "yoke/core/error.hpp"
#include "yoke/launch/rank_count.hpp"
#include "yoke/launch/store_port.hpp"

namespace yoke::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(std::string_view wanted, const MachineResources& machine, Code code) {
  try {
    static_cast<void>(rank_count(wanted, "--nproc-per-node", machine));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  ADD_FAILURE() << wanted << " was taken";
  return {};
}

TEST(RankCount, B024ATextThatIsNoCountIsQuotedWithTheAllowedForms) {
  for (const char* wanted : {"--work-dir", "GPUS=2", "0", "-1", "2.5", "5000"}) {
    EXPECT_THAT(refusal(wanted, {.cores = 2}, Code::invalid_argument),
                AllOf(HasSubstr(std::string("'") + wanted + "'"), HasSubstr("gpu, cpu, auto")));
  }
}

TEST(RankCount, B024GpuWithoutAGpuIsRefused) {
  EXPECT_THAT(refusal("gpu", {.cores = 2}, Code::unsupported), HasSubstr("no GPU found"));
}

TEST(RankCount, B024MoreProcessesThanVisibleGpusAreRefusedWithTheVariable) {
  EXPECT_THAT(refusal("4", {.gpus = 2, .gpu_filter = "CUDA_VISIBLE_DEVICES=1,2", .cores = 8},
                      Code::unsupported),
              HasSubstr("4 processes and 2 visible GPUs (CUDA_VISIBLE_DEVICES=1,2)"));
}

TEST(RankCount, B024WithoutAFilterTheVariableIsNamedAsNotSet) {
  EXPECT_THAT(refusal("3", {.gpus = 2, .cores = 8}, Code::unsupported),
              HasSubstr("3 processes and 2 visible GPUs (CUDA_VISIBLE_DEVICES not set)"));
}

TEST(RankCount, B024AutoWithoutAGpuTakesTheCoresAndSaysSo) {
  const RankCount count = rank_count("auto", "--nproc-per-node", {.cores = 6});

  EXPECT_EQ(count.ranks, 6);
  EXPECT_THAT(count.notice, HasSubstr("one rank per core: 6"));
}

TEST(RankCount, NothingSaidIsOnePerGpuAndOneWithout) {
  EXPECT_EQ(rank_count("", "", {.gpus = 3, .cores = 8}).ranks, 3);
  EXPECT_EQ(rank_count("", "", {.cores = 8}).ranks, 1);
  EXPECT_EQ(rank_count("cpu", "", {.gpus = 3, .cores = 8}).ranks, 8);
  EXPECT_EQ(rank_count("auto", "", {.gpus = 3, .cores = 8}).ranks, 3);
}

TEST(RankCount, AGpuThatStaysUnusedIsSaid) {
  EXPECT_THAT(rank_count("2", "--ranks", {.gpus = 8, .cores = 8}).notice,
              HasSubstr("6 of 8 visible GPUs stay unused"));
  EXPECT_EQ(rank_count("8", "--ranks", {.gpus = 8, .cores = 8}).notice, "");
}

TEST(RankEnvironment, SetsWhatTorchrunSets) {
  const JobFacts job{
      .id = "j1", .ranks = 4, .port = 4711, .store_descriptor = 5, .scratch_folder = "/tmp/x"};

  const core::EnvironmentMap variables = rank_environment({{"HOME", "/h"}}, {}, job, 2);

  EXPECT_EQ(variables.at("RANK"), "2");
  EXPECT_EQ(variables.at("WORLD_SIZE"), "4");
  EXPECT_EQ(variables.at("LOCAL_RANK"), "2");
  EXPECT_EQ(variables.at("LOCAL_WORLD_SIZE"), "4");
  EXPECT_EQ(variables.at("GROUP_RANK"), "0");
  EXPECT_EQ(variables.at("GROUP_WORLD_SIZE"), "1");
  EXPECT_EQ(variables.at("ROLE_RANK"), "2");
  EXPECT_EQ(variables.at("ROLE_WORLD_SIZE"), "4");
  EXPECT_EQ(variables.at("ROLE_NAME"), "default");
  EXPECT_EQ(variables.at("MASTER_ADDR"), "127.0.0.1");
  EXPECT_EQ(variables.at("MASTER_PORT"), "4711");
  EXPECT_EQ(variables.at("TORCHELASTIC_RESTART_COUNT"), "0");
  EXPECT_EQ(variables.at("TORCHELASTIC_MAX_RESTARTS"), "0");
  EXPECT_EQ(variables.at("TORCHELASTIC_RUN_ID"), "j1");
  EXPECT_EQ(variables.at("TORCHELASTIC_ERROR_FILE"), "/tmp/x/2/error.json");
  EXPECT_EQ(variables.at("TORCH_NCCL_ASYNC_ERROR_HANDLING"), "1");
  EXPECT_EQ(variables.at("YOKE_JOB_ID"), "j1");
  EXPECT_EQ(variables.at("HOME"), "/h");
  EXPECT_EQ(variables.count("YOKE_STORE_FD"), 0U);
}

TEST(RankEnvironment, ARankReadsItsOwnFactsBack) {
  const JobFacts job{
      .id = "j1", .ranks = 4, .port = 4711, .store_descriptor = 5, .scratch_folder = "/tmp/x"};

  const core::RankFacts facts = core::rank_facts(rank_environment({}, {}, job, 0));

  EXPECT_EQ(facts.launcher, "yoke");
  EXPECT_EQ(facts.world_size, 4);
  EXPECT_EQ(facts.local_world_size, 4);
  EXPECT_EQ(facts.node_count, 1);
  EXPECT_EQ(facts.master_port, 4711);
  EXPECT_EQ(facts.store_descriptor, 5);
  EXPECT_EQ(facts.job_id, "j1");
}

TEST(RankEnvironment, AnOuterLaunchersStoreAndErrorFileAreNotPassedOn) {
  const core::EnvironmentMap outer{{"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                   {"TORCHELASTIC_ERROR_FILE", "/tmp/outer"},
                                   {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "3"},
                                   {"YOKE_STORE_FD", "9"}};

  const core::EnvironmentMap variables =
      rank_environment(outer, {{"A", "b"}}, {.id = "j", .ranks = 2}, 1);

  EXPECT_EQ(variables.count("TORCHELASTIC_USE_AGENT_STORE"), 0U);
  EXPECT_EQ(variables.count("YOKE_STORE_FD"), 0U);
  EXPECT_NE(variables.at("TORCHELASTIC_ERROR_FILE"), "/tmp/outer");
  EXPECT_EQ(variables.at("TORCH_NCCL_ASYNC_ERROR_HANDLING"), "3");
  EXPECT_EQ(variables.at("A"), "b");
}

TEST(RankEnvironment, MallocTakesLargePagesUnlessTheUserSaid) {
  const JobFacts job{.id = "j", .ranks = 2};

  EXPECT_EQ(rank_environment({}, {}, job, 0).at("GLIBC_TUNABLES"), "glibc.malloc.hugetlb=1");
  EXPECT_EQ(rank_environment({{"GLIBC_TUNABLES", ""}}, {}, job, 0).at("GLIBC_TUNABLES"), "");
}

TEST(Threads, B025AreSharedOutWithOneNoticeUnlessTheUserSaid) {
  core::EnvironmentMap unset;
  core::EnvironmentMap three{{"OMP_NUM_THREADS", "3"}};
  core::EnvironmentMap alone;

  EXPECT_THAT(share_threads(unset, 2, 2), HasSubstr("OMP_NUM_THREADS=1 for each of 2 ranks"));
  EXPECT_EQ(share_threads(three, 2, 2), "");
  EXPECT_EQ(share_threads(alone, 1, 2), "");
  EXPECT_EQ(unset.at("OMP_NUM_THREADS"), "1");
  EXPECT_EQ(three.at("OMP_NUM_THREADS"), "3");
  EXPECT_EQ(alone.count("OMP_NUM_THREADS"), 0U);
}

TEST(Threads, WhatOpenmpCannotReadCountsAsNotSaid) {
  for (const char* value : {"0", "abc", "-2", ""}) {
    core::EnvironmentMap variables{{"OMP_NUM_THREADS", value}};
    static_cast<void>(share_threads(variables, 2, 8));
    EXPECT_EQ(variables.at("OMP_NUM_THREADS"), "4") << value;
  }
  core::EnvironmentMap nested{{"OMP_NUM_THREADS", "3,2"}};
  EXPECT_EQ(share_threads(nested, 2, 8), "");
}

TEST(Threads, AnEvenShareIsRoundedDownAndNeverZero) {
  EXPECT_EQ(threads_per_rank(16, 3), 5);
  EXPECT_EQ(threads_per_rank(2, 8), 1);
}

/// A server as c10d's store opens it.
int bind_again(int port) {
  const int server = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  const int off = 0;
  ::setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(server, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<std::uint16_t>(port));
  const bool bound = ::bind(server, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                     ::listen(server, 8) == 0;
  ::close(server);
  return bound ? 0 : errno;
}

TEST(StorePort, AReservedPortIsFreeForARankThatBindsItItself) {
  const StorePort store = reserve_store_port(std::nullopt, /*listen=*/false);

  EXPECT_EQ(bind_again(store.port), 0);
}

TEST(StorePort, AListeningPortIsTaken) {
  const StorePort store = reserve_store_port(std::nullopt, /*listen=*/true);

  EXPECT_EQ(bind_again(store.port), EADDRINUSE);
  EXPECT_THROW(static_cast<void>(reserve_store_port(store.port, false)), Error);
}

TEST(StorePort, AReservedPortIsGivenToNobodyElse) {
  const StorePort first = reserve_store_port(std::nullopt, false);

  for (int i = 0; i < 200; ++i) EXPECT_NE(reserve_store_port(std::nullopt, false).port, first.port);
}

TEST(LinePrefixer, PutsThePrefixBeforeWholeLinesOnly) {
  LinePrefixer prefixer("[r1] ");

  EXPECT_EQ(prefixer.add("one\ntw"), "[r1] one\n");
  EXPECT_EQ(prefixer.add("o\n\n"), "[r1] two\n[r1] \n");
  EXPECT_EQ(prefixer.add("end"), "");
  EXPECT_EQ(prefixer.finish(), "[r1] end\n");
  EXPECT_EQ(prefixer.finish(), "");
}

TEST(LinePrefixer, ALineWithoutAnEndIsCutSomewhere) {
  LinePrefixer prefixer("");

  const std::string out = prefixer.add(std::string(100'000, 'x'));

  EXPECT_EQ(out.size(), 100'001U);
}

}  // namespace
}  // namespace yoke::launch
