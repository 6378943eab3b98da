#include <utility>

#include "launchers.hpp"
#include "yoke/core/text.hpp"

namespace yoke::core {
namespace {

std::optional<RankFacts> from_set(const Variables& variables, const Names& names,
                                  const char* launcher, std::string job_id) {
  const auto rank = variables.number(names.rank);
  const auto world_size = variables.number(names.world_size);
  if (!rank && !world_size) return std::nullopt;
  if (!rank || !world_size) {
    refuse_variables(
        variables.quote_all({names.rank, names.world_size}) + ": one goes with the other",
        "start the program with mpirun, or unset it");
  }
  RankFacts facts;
  facts.launcher = launcher;
  facts.rank = *rank;
  facts.world_size = *world_size;
  facts.job_id = std::move(job_id);
  const auto local_rank = variables.number(names.local_rank);
  facts.local_rank = local_rank.value_or(*rank);
  facts.local_world_size =
      variables.number(names.local_world_size).value_or(local_rank ? *local_rank + 1 : *world_size);
  check_ranges(variables, facts, names);
  facts.node_count = divided_up(facts.world_size, facts.local_world_size);
  facts.node_rank =
      facts.rank / facts.local_world_size;  // with ranks placed by slot, mpirun's default
  read_meeting_point(variables, facts);
  return facts;
}

}  // namespace

std::optional<RankFacts> from_mpi(const Variables& variables) {
  if (auto facts = from_set(variables, kOpenMpi, "openmpi",
                            variables.first_text({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}))) {
    return facts;
  }
  if (auto facts =
          from_set(variables, kMvapich, "mvapich", variables.first_text({"MPIRUN_ID", "PMI_ID"})))
    return facts;
  return from_set(variables, kMpich, "mpich",
                  variables.first_text({"PMI_JOBID", "HYDI_CONTROL_FD", "PMI_PORT"}));
}

}  // namespace yoke::core
