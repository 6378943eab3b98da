#include "launchers.hpp"
#include "yoke/core/text.hpp"

namespace yoke::core {

std::optional<RankFacts> from_kubernetes(const Variables& variables) {
  const auto index = variables.number("JOB_COMPLETION_INDEX");
  if (!index) return std::nullopt;
  RankFacts facts;
  const auto pods = variables.first_number({"WORLD_SIZE", "PET_NNODES"});
  if (!pods) {
    facts.notice = text("running alone: ", variables.quote("JOB_COMPLETION_INDEX"),
                        " counts pods and WORLD_SIZE, their number, is not set");
    return facts;
  }
  facts.launcher = "kubernetes";
  facts.counts_nodes = true;
  facts.rank = facts.node_rank = *index;
  facts.world_size = facts.node_count = *pods;
  check_ranges(variables, facts,
               {"JOB_COMPLETION_INDEX", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"});
  read_meeting_point(variables, facts);
  check_meeting_point(
      variables, facts, "pods",
      "set MASTER_ADDR to the first pod's name in the headless service, and MASTER_PORT");
  facts.job_id = variables.first_text({"JOB_NAME", "MASTER_ADDR"});
  return facts;
}

}  // namespace yoke::core
