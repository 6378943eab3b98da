#include "yoke/cluster/emit.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"

namespace yoke::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

EmitOptions job() {
  return {.command = {"./train", "--lr", "0.1"},
          .nodes = 2,
          .fewest_nodes = 2,
          .ranks = 8,
          .gpus = 8,
          .image = "registry.example/yoke:v2.9"};
}

TEST(Emit, ASlurmScriptHasOneTaskOnEachMachine) {
  EmitOptions options = job();
  options.image.clear();
  options.partition = "gpu";
  options.account = "me";
  options.time = "2:00:00";
  options.slurm = "--mem=0 --exclusive";
  options.max_restarts = 3;

  const std::string script = slurm_script(options);

  EXPECT_THAT(
      script,
      AllOf(HasSubstr("#!/bin/bash\n#SBATCH --job-name=train\n"), HasSubstr("#SBATCH --nodes=2\n"),
            HasSubstr("#SBATCH --ntasks-per-node=1\n"), HasSubstr("#SBATCH --gpus-per-node=8\n"),
            HasSubstr("#SBATCH --partition=gpu\n"), HasSubstr("#SBATCH --account=me\n"),
            HasSubstr("#SBATCH --time=2:00:00\n"),
            HasSubstr("#SBATCH --mem=0\n#SBATCH --exclusive\n")));
  EXPECT_THAT(script, AllOf(HasSubstr("--nproc-per-node 8"), HasSubstr("--max-restarts 3"),
                            HasSubstr(" -- ./train --lr 0.1\n"), HasSubstr("scontrol requeue"),
                            HasSubstr("--open-mode=append")));
}

TEST(Emit, B116TheStopTimeOfManifestsIsAtLeastTheGracePeriods) {
  EmitOptions options = job();
  options.grace = 20s;
  options.signal_grace = 100s;

  EXPECT_THAT(slurm_script(options), HasSubstr("#SBATCH --signal=USR1@130\n"));
  EXPECT_THAT(kubernetes_manifest(options), HasSubstr("terminationGracePeriodSeconds: 130\n"));
}

TEST(Emit, B038AnIndexedJobCountsItsPods) {
  EmitOptions options = job();
  options.ranks = options.gpus = 2;

  const std::string manifest = kubernetes_manifest(options);

  EXPECT_THAT(manifest, AllOf(HasSubstr("completions: 2\n"), HasSubstr("parallelism: 2\n"),
                              HasSubstr("name: PET_NNODES\n              value: \"2\"\n"),
                              HasSubstr("name: YOKE_WORLD_SIZE\n              value: \"4\"\n"),
                              HasSubstr("$(JOB_COMPLETION_INDEX)")));
}

TEST(Emit, B038TheMasterOfKubeflowIsCounted) {
  EmitOptions options = job();
  options.nodes = options.fewest_nodes = 3;
  options.ranks = options.gpus = 2;
  options.kind = "kubeflow";

  const std::string manifest = kubernetes_manifest(options);

  EXPECT_THAT(manifest,
              AllOf(HasSubstr("Master:\n      replicas: 1\n"),
                    HasSubstr("Worker:\n      replicas: 2\n"), HasSubstr("value: \"3\"\n"),
                    HasSubstr("value: \"6\"\n"), HasSubstr("nprocPerNode: \"2\"")));
}

TEST(Emit, AManifestAsksForNoMoreThanItNeeds) {
  const std::string manifest = kubernetes_manifest(job());

  EXPECT_THAT(manifest,
              AllOf(HasSubstr("runAsNonRoot: true"), HasSubstr("allowPrivilegeEscalation: false"),
                    HasSubstr("nvidia.com/gpu: 8"), HasSubstr("medium: Memory"),
                    HasSubstr("secretKeyRef"), HasSubstr("clusterIP: None"),
                    HasSubstr("values: [2, 3, 4]"), HasSubstr("DisruptionTarget")));
  EXPECT_THAT(manifest, Not(HasSubstr("--secret")));
}

TEST(Emit, NamesAndValuesThatCannotStandAreRefused) {
  EmitOptions options = job();
  options.name = "My_Job";
  EXPECT_THROW(static_cast<void>(kubernetes_manifest(options)), Error);
  options = job();
  options.image.clear();
  EXPECT_THROW(static_cast<void>(kubernetes_manifest(options)), Error);
  options.partition = "a\nrm -rf /";
  EXPECT_THROW(static_cast<void>(slurm_script(options)), Error);
}

TEST(Emit, WordsOfTheProgramStayWords) {
  EmitOptions options = job();
  options.command = {"./train", "a b", "it's", "$HOME"};

  EXPECT_THAT(slurm_script(options), HasSubstr("./train 'a b' 'it'\\''s' '$HOME'\n"));
  EXPECT_THAT(kubernetes_manifest(options), HasSubstr("- \"it's\"\n"));
}

TEST(Emit, TorchrunsCall) {
  EmitOptions options = job();
  options.command = {"python3", "-u", "train.py"};
  options.nodes = options.fewest_nodes = 1;

  EXPECT_EQ(torchrun_commands(options), "torchrun --standalone --nproc-per-node 8 train.py\n");
  options.nodes = 4;
  options.fewest_nodes = 2;
  options.command = {"./train"};
  EXPECT_THAT(torchrun_commands(options), AllOf(HasSubstr("--nnodes 2:4 --rdzv-backend c10d"),
                                                HasSubstr(" --no-python ./train\n")));
}

}  // namespace
}  // namespace yoke::cluster
