#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::core {

/// Environment variables by name. Functions take the map, so that a test gives its own.
using EnvironmentMap = std::map<std::string, std::string>;

/// The process's variables at this moment.
[[nodiscard]] EnvironmentMap environment();

/// The value of `name`, or `fallback` where it is absent or empty.
[[nodiscard]] std::string value_or(const EnvironmentMap& variables, const std::string& name,
                                   std::string fallback = {});

/// Which rank this process is, of how many, and where they meet.
struct RankFacts {
  int rank{0};
  int world_size{1};
  int local_rank{0};
  int local_world_size{1};
  int node_rank{0};
  int node_count{1};
  std::string master_address;    ///< empty where the launcher names no meeting point (MPI)
  int master_port{0};            ///< 0 likewise
  std::string launcher{"none"};  ///< none, yoke, torchrun, environment, slurm, openmpi, mpich,
                                 ///< mvapich, kubeflow, kubernetes
  std::string job_id;            ///< the same on all ranks of a job; empty when alone
  bool agent_store{
      false};  ///< the launcher hosts the store: rank 0 connects to it as the others do
  int store_descriptor{
      -1};  ///< rank 0 under `yoke launch`: a socket bound to master_port, to listen on
  int restart_count{0};
  bool counts_nodes{
      false};          ///< the launcher started one process per pod, whatever its number of GPUs
  std::string notice;  ///< one line to say once (rank 0), may be empty
};

/// Reads the environment contract: the innermost launcher that set a whole group of variables.
///
/// Order: RANK and WORLD_SIZE with a launcher's mark (TORCHELASTIC_RUN_ID, YOKE_JOB_ID); an MPI
///   launcher inside a Slurm step; a Slurm step; Open MPI, MVAPICH, MPICH and Intel MPI; RANK and
///   WORLD_SIZE without a mark; a Kubernetes indexed job; alone.
/// Errors: invalid_argument, quoting every variable that takes part, for a value that is no number,
///   a rank outside its world, a group with a part missing, and RANK and WORLD_SIZE without a mark
///   that contradict a live launcher. docs/launch.md has the table of variables.
[[nodiscard]] RankFacts rank_facts(const EnvironmentMap& variables);

/// The hosts of a Slurm node list, in order: "a[1-2],b" is a1, a2, b. Leading zeros give the width.
/// Errors: invalid_argument quoting `list`, for a bracket or range that does not close.
[[nodiscard]] std::vector<std::string> expand_node_list(std::string_view list);

/// The number of `list`'s items for node `index`: "4(x2),3" is 4, 4, 3.
/// Errors: invalid_argument quoting `list`.
[[nodiscard]] int tasks_of_node(std::string_view list, int index);

}  // namespace yoke::core
