#include <cstdint>

#include "launchers.hpp"
#include "yoke/core/text.hpp"

namespace yoke::core {
namespace {

/// Slurm numbers steps from 0 and keeps the highest ids for the shell of salloc, the batch script
/// and what else it starts itself: no ranks run there.
bool is_reserved_step(const std::string& id) {
  constexpr std::int64_t kFirstReserved = 0xFFFFFFF0;
  const auto number = parse_integer(id);
  return number && *number >= kFirstReserved;
}

std::string slurm_step(const Variables& variables) {
  return variables.first_text({"SLURM_STEP_ID", "SLURM_STEPID"});
}

/// What was asked for against what was started; where Slurm itself says how the tasks of the step
/// are spread, that counts.
void check_slurm_counts(const Variables& variables) {
  if (variables.has("SLURM_STEP_TASKS_PER_NODE")) return;
  const auto tasks = variables.first_number({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  const auto per_node = variables.number("SLURM_NTASKS_PER_NODE");
  const auto nodes =
      variables.first_number({"SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"});
  if (!tasks || !per_node || static_cast<std::int64_t>(*per_node) * nodes.value_or(1) == *tasks)
    return;
  refuse_variables(text(variables.quote_all({"SLURM_NTASKS", "SLURM_NTASKS_PER_NODE"}), " on ",
                        nodes.value_or(1), nodes.value_or(1) == 1 ? " node" : " nodes",
                        ": ranks would wait for tasks that nobody starts"),
                   text("start ", static_cast<std::int64_t>(*per_node) * nodes.value_or(1),
                        " tasks (srun --ntasks), or unset SLURM_NTASKS_PER_NODE"));
}

/// One port for all tasks of a step, away from the ephemeral range, and another for the next job.
int slurm_port(const Variables& variables) {
  const int job = variables.first_number({"SLURM_JOB_ID", "SLURM_JOBID"}).value_or(0);
  const int step = variables.first_number({"SLURM_STEP_ID", "SLURM_STEPID"}).value_or(0);
  return 15'000 + static_cast<int>((std::int64_t{job} * 31 + step) % 10'000);
}

}  // namespace

bool is_slurm_step(const Variables& variables) {
  const std::string step = slurm_step(variables);
  if (!variables.has("SLURM_PROCID") || is_reserved_step(step)) return false;
  return !step.empty() || variables.number("SLURM_PROCID") != 0;
}

std::optional<RankFacts> from_slurm(const Variables& variables) {
  check_slurm_counts(variables);
  if (!is_slurm_step(variables)) return std::nullopt;
  const auto world_size =
      variables.first_number({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"});
  if (!world_size) {
    refuse_variables(
        variables.quote_all({"SLURM_PROCID", "SLURM_NTASKS"}) + ": a task without their number",
        "start the program with srun");
  }
  RankFacts facts;
  facts.launcher = "slurm";
  facts.rank = variables.number("SLURM_PROCID").value_or(0);
  facts.world_size = *world_size;
  facts.node_rank = variables.number("SLURM_NODEID").value_or(0);
  facts.node_count = variables.first_number({"SLURM_STEP_NUM_NODES", "SLURM_NNODES"}).value_or(1);
  facts.local_rank = variables.number("SLURM_LOCALID").value_or(facts.rank);
  const std::string per_node =
      variables.first_text({"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  facts.local_world_size = !per_node.empty()
                               ? tasks_of_node(per_node, facts.node_rank)
                               : variables.number("SLURM_NTASKS_PER_NODE")
                                     .value_or(divided_up(facts.world_size, facts.node_count));
  check_ranges(variables, facts, kSlurm);
  const std::string hosts =
      variables.first_text({"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  if (!hosts.empty()) facts.master_address = expand_node_list(hosts).front();
  facts.master_port = slurm_port(variables);
  read_meeting_point(variables, facts);
  facts.job_id = text("slurm-", variables.first_text({"SLURM_JOB_ID", "SLURM_JOBID"}), ".",
                      slurm_step(variables));
  facts.restart_count = variables.number("SLURM_RESTART_COUNT").value_or(0);
  return facts;
}

}  // namespace yoke::core
