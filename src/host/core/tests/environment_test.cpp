#include "yoke/core/environment.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"

namespace yoke::core {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// `more` on top of `base`; an empty value unsets.
EnvironmentMap with(EnvironmentMap base, const EnvironmentMap& more) {
  for (const auto& [name, value] : more) base.insert_or_assign(name, value);
  return base;
}

/// Rank 3 of 4, on the second of two machines, as torchrun sets it.
const EnvironmentMap kTorchrun{{"RANK", "3"},
                               {"WORLD_SIZE", "4"},
                               {"LOCAL_RANK", "1"},
                               {"LOCAL_WORLD_SIZE", "2"},
                               {"GROUP_RANK", "1"},
                               {"GROUP_WORLD_SIZE", "2"},
                               {"MASTER_ADDR", "n0.lan"},
                               {"MASTER_PORT", "29500"},
                               {"TORCHELASTIC_RUN_ID", "job7"},
                               {"TORCHELASTIC_RESTART_COUNT", "2"},
                               {"TORCHELASTIC_USE_AGENT_STORE", "True"}};

/// Task 3 of 4 of `srun -N2 --ntasks-per-node=2`.
const EnvironmentMap kSlurm{
    {"SLURM_JOB_ID", "77"},           {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "3"},
    {"SLURM_LOCALID", "1"},           {"SLURM_NODEID", "1"},  {"SLURM_NTASKS", "4"},
    {"SLURM_NTASKS_PER_NODE", "2"},   {"SLURM_NNODES", "2"},  {"SLURM_TASKS_PER_NODE", "2(x2)"},
    {"SLURM_STEP_NODELIST", "n[0-1]"}};

const EnvironmentMap kOpenMpi{
    {"OMPI_COMM_WORLD_RANK", "5"},       {"OMPI_COMM_WORLD_SIZE", "8"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
    {"OMPI_COMM_WORLD_NODE_RANK", "3"},  {"PMIX_NAMESPACE", "1234"}};

std::string refusal(const EnvironmentMap& variables) {
  try {
    static_cast<void>(rank_facts(variables));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.what();
  }
  ADD_FAILURE() << "was taken";
  return {};
}

TEST(RankFacts, NothingSetIsAlone) {
  const RankFacts facts = rank_facts({{"HOME", "/h"}, {"RANK", ""}});

  EXPECT_EQ(facts.launcher, "none");
  EXPECT_EQ(facts.world_size, 1);
  EXPECT_EQ(facts.job_id, "");
  EXPECT_EQ(facts.notice, "");
}

TEST(RankFacts, TorchrunsVariablesAreRead) {
  const RankFacts facts = rank_facts(kTorchrun);

  EXPECT_EQ(facts.launcher, "torchrun");
  EXPECT_EQ(facts.rank, 3);
  EXPECT_EQ(facts.world_size, 4);
  EXPECT_EQ(facts.local_rank, 1);
  EXPECT_EQ(facts.local_world_size, 2);
  EXPECT_EQ(facts.node_rank, 1);
  EXPECT_EQ(facts.node_count, 2);
  EXPECT_EQ(facts.master_address, "n0.lan");
  EXPECT_EQ(facts.master_port, 29500);
  EXPECT_EQ(facts.job_id, "job7");
  EXPECT_EQ(facts.restart_count, 2);
  EXPECT_TRUE(facts.agent_store);
}

TEST(RankFacts, TwoTorchrunsWithoutANameAreToldApartByTheirPorts) {
  const RankFacts one = rank_facts(with(kTorchrun, {{"TORCHELASTIC_RUN_ID", "none"}}));
  const RankFacts other =
      rank_facts(with(kTorchrun, {{"TORCHELASTIC_RUN_ID", "none"}, {"MASTER_PORT", "29501"}}));

  EXPECT_NE(one.job_id, other.job_id);
}

TEST(RankFacts, YokeLaunchIsToldByItsMarkAndGivesRankZeroTheSocket) {
  const EnvironmentMap yoke = with(kTorchrun, {{"YOKE_JOB_ID", "job7"}, {"YOKE_STORE_FD", "9"}});

  const RankFacts third = rank_facts(yoke);
  const RankFacts first = rank_facts(
      with(yoke, {{"RANK", "0"}, {"LOCAL_RANK", "0"}, {"TORCHELASTIC_USE_AGENT_STORE", ""}}));

  EXPECT_EQ(third.launcher, "yoke");
  EXPECT_EQ(third.store_descriptor, -1);
  EXPECT_EQ(first.store_descriptor, 9);
  EXPECT_FALSE(first.agent_store);
}

TEST(RankFacts, TorchrunInsideYokeLaunchIsTheInnermost) {
  const RankFacts facts = rank_facts(with(kTorchrun, {{"YOKE_JOB_ID", "outer"}}));

  EXPECT_EQ(facts.launcher, "torchrun");
  EXPECT_EQ(facts.job_id, "job7");
}

TEST(RankFacts, B037SlurmsTaskIsTheRankAndTheFirstHostTheMaster) {
  const RankFacts facts = rank_facts(kSlurm);

  EXPECT_EQ(facts.launcher, "slurm");
  EXPECT_EQ(facts.rank, 3);
  EXPECT_EQ(facts.local_rank, 1);
  EXPECT_EQ(facts.world_size, 4);
  EXPECT_EQ(facts.local_world_size, 2);
  EXPECT_EQ(facts.node_rank, 1);
  EXPECT_EQ(facts.node_count, 2);
  EXPECT_EQ(facts.master_address, "n0");
  EXPECT_GT(facts.master_port, 1024);
  EXPECT_EQ(facts.job_id, "slurm-77.0");
}

TEST(RankFacts, B037FewerTasksThanAskedForAreRefusedWithBothVariables) {
  const std::string words = refusal({{"SLURM_NNODES", "1"},
                                     {"SLURM_PROCID", "0"},
                                     {"SLURM_STEP_ID", "0"},
                                     {"SLURM_NTASKS", "1"},
                                     {"SLURM_NTASKS_PER_NODE", "2"}});

  EXPECT_THAT(words, AllOf(HasSubstr("SLURM_NTASKS=1"), HasSubstr("SLURM_NTASKS_PER_NODE=2")));
}

TEST(RankFacts, WhatSlurmStartedCountsMoreThanWhatWasAskedFor) {
  const RankFacts facts = rank_facts({{"SLURM_NNODES", "1"},
                                      {"SLURM_PROCID", "0"},
                                      {"SLURM_STEP_ID", "1"},
                                      {"SLURM_NTASKS", "1"},
                                      {"SLURM_NTASKS_PER_NODE", "2"},
                                      {"SLURM_STEP_TASKS_PER_NODE", "1"}});

  EXPECT_EQ(facts.world_size, 1);
}

TEST(RankFacts, B037ALaunchersSetWinsOverSlurmsAndThisIsSaid) {
  const RankFacts facts = rank_facts(
      with(kTorchrun, {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_ID", "0"}}));

  EXPECT_EQ(facts.launcher, "torchrun");
  EXPECT_EQ(facts.rank, 3);
  EXPECT_THAT(facts.notice, AllOf(HasSubstr("torchrun"), HasSubstr("SLURM_PROCID=1")));
}

TEST(RankFacts, ALeftoverRankThatContradictsAStepIsRefusedAndBothAreQuoted) {
  const std::string words = refusal(with(kSlurm, {{"RANK", "0"}, {"WORLD_SIZE", "1"}}));

  EXPECT_THAT(words, AllOf(HasSubstr("RANK=0, WORLD_SIZE=1"), HasSubstr("SLURM_PROCID=3"),
                           HasSubstr("SLURM_NTASKS=4")));
}

TEST(RankFacts, ARankThatAgreesWithItsStepNeedsNoFurtherVariables) {
  const RankFacts facts =
      rank_facts(with(kSlurm, {{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"MASTER_PORT", "4711"}}));

  EXPECT_EQ(facts.launcher, "slurm");
  EXPECT_EQ(facts.local_rank, 1);
  EXPECT_EQ(facts.master_port, 4711);
}

TEST(RankFacts, TheBatchScriptAndTheShellOfSallocAreNoSteps) {
  const EnvironmentMap batch{
      {"SLURM_JOB_ID", "77"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NTASKS", "4"}};

  EXPECT_EQ(rank_facts(batch).launcher, "none");
  EXPECT_EQ(rank_facts(with(batch, {{"SLURM_STEP_ID", "4294967290"}})).launcher, "none");
}

TEST(RankFacts, TwoJobsOfOneClusterMeetAtDifferentPorts) {
  EXPECT_NE(rank_facts(kSlurm).master_port,
            rank_facts(with(kSlurm, {{"SLURM_JOB_ID", "78"}})).master_port);
  EXPECT_NE(rank_facts(kSlurm).master_port,
            rank_facts(with(kSlurm, {{"SLURM_STEP_ID", "1"}})).master_port);
}

TEST(RankFacts, OpenMpisNodeRankIsNotTakenForTheLocalRank) {
  const RankFacts facts = rank_facts(kOpenMpi);

  EXPECT_EQ(facts.launcher, "openmpi");
  EXPECT_EQ(facts.rank, 5);
  EXPECT_EQ(facts.world_size, 8);
  EXPECT_EQ(facts.local_rank, 1);
  EXPECT_EQ(facts.local_world_size, 4);
  EXPECT_EQ(facts.node_count, 2);
  EXPECT_EQ(facts.master_address, "");
  EXPECT_EQ(facts.job_id, "1234");
}

TEST(RankFacts, MpichIntelAndMvapichAreRead) {
  const RankFacts intel = rank_facts(
      {{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}});
  const RankFacts mvapich = rank_facts({{"MV2_COMM_WORLD_RANK", "1"},
                                        {"MV2_COMM_WORLD_SIZE", "2"},
                                        {"MV2_COMM_WORLD_LOCAL_RANK", "1"},
                                        {"MV2_COMM_WORLD_LOCAL_SIZE", "2"}});

  EXPECT_EQ(intel.launcher, "mpich");
  EXPECT_EQ(intel.rank, 2);
  EXPECT_EQ(intel.local_rank, 0);
  EXPECT_EQ(intel.node_rank, 1);
  EXPECT_EQ(mvapich.launcher, "mvapich");
  EXPECT_EQ(mvapich.local_world_size, 2);
}

TEST(RankFacts, MpirunInsideAStepStartsTheRanks) {
  const RankFacts facts = rank_facts(
      with(kOpenMpi, {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_ID", "0"}}));

  EXPECT_EQ(facts.launcher, "openmpi");
  EXPECT_EQ(facts.rank, 5);
  EXPECT_THAT(facts.notice, HasSubstr("SLURM_PROCID=1"));
}

TEST(RankFacts, ARankThatContradictsMpirunIsRefused) {
  EXPECT_THAT(refusal(with(kOpenMpi, {{"RANK", "0"}, {"WORLD_SIZE", "1"}})),
              AllOf(HasSubstr("RANK=0"), HasSubstr("OMPI_COMM_WORLD_RANK=5")));
}

TEST(RankFacts, AnIndexedJobCountsPods) {
  const RankFacts facts = rank_facts({{"JOB_COMPLETION_INDEX", "1"},
                                      {"WORLD_SIZE", "3"},
                                      {"MASTER_ADDR", "train-0.train"},
                                      {"MASTER_PORT", "29500"}});

  EXPECT_EQ(facts.launcher, "kubernetes");
  EXPECT_EQ(facts.rank, 1);
  EXPECT_EQ(facts.node_count, 3);
  EXPECT_EQ(facts.local_world_size, 1);
  EXPECT_TRUE(facts.counts_nodes);
}

TEST(RankFacts, AnIndexedJobOfUnknownSizeRunsAloneAndSaysSo) {
  const RankFacts facts = rank_facts({{"JOB_COMPLETION_INDEX", "1"}});

  EXPECT_EQ(facts.world_size, 1);
  EXPECT_THAT(facts.notice, HasSubstr("JOB_COMPLETION_INDEX=1"));
}

TEST(RankFacts, KubeflowsRankCountsPodsUnlessTorchrunRunsInThem) {
  const EnvironmentMap pod{{"RANK", "1"},          {"WORLD_SIZE", "2"},
                           {"MASTER_ADDR", "m-0"}, {"MASTER_PORT", "23456"},
                           {"PET_NNODES", "2"},    {"PET_NPROC_PER_NODE", "4"}};

  EXPECT_EQ(rank_facts(pod).launcher, "kubeflow");
  EXPECT_TRUE(rank_facts(pod).counts_nodes);
  EXPECT_EQ(rank_facts(pod).local_rank, 0);
  EXPECT_EQ(rank_facts(with(pod, kTorchrun)).launcher, "torchrun");
}

TEST(RankFacts, VariablesSetByHandAreTaken) {
  const RankFacts facts = rank_facts(
      {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "4711"}});

  EXPECT_EQ(facts.launcher, "environment");
  EXPECT_EQ(facts.local_rank, 1);
  EXPECT_EQ(facts.local_world_size, 2);
  EXPECT_EQ(facts.node_count, 1);
}

TEST(RankFacts, WhatCannotBeIsRefusedAndQuoted) {
  const EnvironmentMap hand{
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "4711"}};

  EXPECT_THAT(refusal(with(hand, {{"RANK", "one"}})), HasSubstr("RANK=one"));
  EXPECT_THAT(refusal(with(hand, {{"RANK", "-1"}})), HasSubstr("RANK=-1"));
  EXPECT_THAT(refusal(with(hand, {{"RANK", "2"}})), HasSubstr("RANK=2, WORLD_SIZE=2"));
  EXPECT_THAT(refusal(with(hand, {{"RANK", "0"}, {"WORLD_SIZE", "0"}})), HasSubstr("WORLD_SIZE=0"));
  EXPECT_THAT(refusal(with(hand, {{"WORLD_SIZE", ""}})), HasSubstr("WORLD_SIZE (not set)"));
  EXPECT_THAT(refusal(with(hand, {{"MASTER_PORT", "70000"}})), HasSubstr("MASTER_PORT=70000"));
  EXPECT_THAT(refusal(with(hand, {{"MASTER_PORT", ""}})), HasSubstr("MASTER_PORT (not set)"));
  EXPECT_THAT(refusal(with(hand, {{"MASTER_ADDR", "n0"}})), HasSubstr("LOCAL_RANK (not set)"));
  EXPECT_THAT(refusal(with(hand, {{"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}})),
              HasSubstr("LOCAL_RANK=2, LOCAL_WORLD_SIZE=2"));
  EXPECT_THAT(refusal(with(hand, {{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "3"}})),
              HasSubstr("LOCAL_WORLD_SIZE=3, WORLD_SIZE=2"));
}

TEST(RankFacts, EveryRefusalSaysWhatToDo) {
  EXPECT_THAT(refusal({{"RANK", "1"}}), HasSubstr(" / unset it if it is a leftover"));
  EXPECT_THAT(refusal({{"PMI_RANK", "1"}}),
              AllOf(HasSubstr(" / "), HasSubstr("PMI_SIZE (not set)")));
  EXPECT_THAT(refusal(with(kSlurm, {{"SLURM_STEP_NODELIST", "n[0-"}})), HasSubstr("'n[0-'"));
}

}  // namespace
}  // namespace yoke::core
