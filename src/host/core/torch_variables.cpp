#include "launchers.hpp"
#include "yoke/core/network.hpp"
#include "yoke/core/text.hpp"

namespace yoke::core {
namespace {

/// PET_* variables without LOCAL_RANK are a Kubeflow pod that runs the program itself, without
/// torchrun.
bool is_kubeflow_pod(const Variables& variables) {
  return !variables.has("LOCAL_RANK") &&
         (variables.has("PET_NNODES") || variables.has("PET_NPROC_PER_NODE"));
}

std::string torchrun_job(const Variables& variables) {
  const std::string run_id = variables.first_text({"TORCHELASTIC_RUN_ID"});
  // torchrun calls every job "none" unless told otherwise; the port tells two jobs of one machine
  // apart.
  return run_id.empty() || run_id == "none" ? "torchrun-" + variables.first_text({"MASTER_PORT"})
                                            : run_id;
}

void read_launcher(const Variables& variables, RankFacts& facts) {
  const std::string yoke_job = variables.first_text({"YOKE_JOB_ID"});
  const std::string run_id = variables.first_text({"TORCHELASTIC_RUN_ID"});
  if (!yoke_job.empty() && (run_id.empty() || run_id == yoke_job)) {
    facts.launcher = "yoke";
    facts.job_id = yoke_job;
    if (const auto descriptor = variables.number("YOKE_STORE_FD"); descriptor && facts.rank == 0) {
      facts.store_descriptor = *descriptor;
    }
  } else if (!run_id.empty()) {
    facts.launcher = "torchrun";
    facts.job_id = torchrun_job(variables);
    const std::string agent = variables.first_text({"TORCHELASTIC_USE_AGENT_STORE"});
    facts.agent_store = agent == "True" || agent == "true" || agent == "1";
  } else {
    facts.launcher = is_kubeflow_pod(variables) ? "kubeflow" : "environment";
    facts.job_id = variables.first_text({"MASTER_PORT"});
  }
}

void read_local_ranks(const Variables& variables, RankFacts& facts) {
  const auto local_rank = variables.number(kTorch.local_rank);
  if (facts.launcher == "kubeflow") {
    facts.counts_nodes = true;
    facts.local_rank = 0;
    facts.local_world_size = 1;
  } else if (local_rank) {
    const bool one_host = is_loopback(facts.master_address);
    facts.local_rank = *local_rank;
    facts.local_world_size = variables.first_number({kTorch.local_world_size, "LOCAL_SIZE"})
                                 .value_or(one_host ? facts.world_size : *local_rank + 1);
  } else if (facts.world_size == 1 || is_loopback(facts.master_address)) {
    facts.local_rank = facts.rank;
    facts.local_world_size = facts.world_size;
  } else {
    refuse_variables(
        text(variables.quote_all({"RANK", "WORLD_SIZE", "LOCAL_RANK"}),
             ": no telling which device is this rank's"),
        "set LOCAL_RANK to the rank's index on its machine, or unset RANK and WORLD_SIZE");
  }
}

}  // namespace

std::optional<RankFacts> from_torch_variables(const Variables& variables) {
  const auto rank = variables.number(kTorch.rank);
  const auto world_size = variables.number(kTorch.world_size);
  if (!rank && (!world_size || !variables.has("LOCAL_RANK"))) return std::nullopt;
  if (!rank || !world_size) {
    refuse_variables(variables.quote_all({"RANK", "WORLD_SIZE"}) + ": one goes with the other",
                     "unset it if it is a leftover, or set both");
  }
  RankFacts facts;
  facts.rank = *rank;
  facts.world_size = *world_size;
  read_meeting_point(variables, facts);
  read_launcher(variables, facts);
  read_local_ranks(variables, facts);
  check_ranges(variables, facts, kTorch);
  check_meeting_point(variables, facts, "ranks",
                      "set MASTER_ADDR and MASTER_PORT on all ranks to the machine of rank 0 and a "
                      "free port there");
  facts.node_rank = variables.first_number({"GROUP_RANK", "NODE_RANK"})
                        .value_or(facts.rank / facts.local_world_size);
  facts.node_count = variables.number("GROUP_WORLD_SIZE")
                         .value_or(divided_up(facts.world_size, facts.local_world_size));
  facts.restart_count = variables.number("TORCHELASTIC_RESTART_COUNT").value_or(0);
  return facts;
}

}  // namespace yoke::core
