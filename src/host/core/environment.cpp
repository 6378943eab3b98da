#include "yoke/core/environment.hpp"

#include <unistd.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::core {
namespace {

using Found = std::optional<RankFacts>;

[[noreturn]] void refuse(std::string message, std::string hint) {
  throw Error(Code::invalid_argument, "environment: " + std::move(message), std::move(hint));
}

/// The map with typed access; an empty value counts as absent.
class Variables {
 public:
  explicit Variables(const EnvironmentMap& map) : map_(map) {}

  [[nodiscard]] std::optional<std::string> text_of(const std::string& name) const {
    const auto found = map_.find(name);
    if (found == map_.end() || found->second.empty()) return std::nullopt;
    return found->second;
  }

  [[nodiscard]] bool has(const std::string& name) const { return text_of(name).has_value(); }

  [[nodiscard]] std::optional<int> number(const std::string& name) const {
    const auto value = text_of(name);
    if (!value) return std::nullopt;
    const auto parsed = parse_integer(*value);
    if (!parsed || *parsed < 0 || *parsed > std::numeric_limits<int>::max()) {
      refuse(quote(name) + " is not a count", "unset it, or give a whole number from 0");
    }
    return static_cast<int>(*parsed);
  }

  /// The first of `names` that is set.
  [[nodiscard]] std::optional<int> first_number(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (const auto value = number(name)) return value;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::string first_text(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (const auto value = text_of(name)) return *value;
    }
    return {};
  }

  /// "NAME=value" or "NAME (not set)".
  [[nodiscard]] std::string quote(const std::string& name) const {
    const auto value = text_of(name);
    return value ? name + "=" + *value : name + " (not set)";
  }

  /// All of `names`, quoted.
  [[nodiscard]] std::string quote_all(std::initializer_list<const char*> names) const {
    std::vector<std::string> quoted;
    for (const char* name : names) quoted.push_back(quote(name));
    return joined(quoted);
  }

 private:
  const EnvironmentMap& map_;
};

/// The names under which one launcher gives the numbers of a rank.
struct Names {
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_world_size;
};

constexpr Names kTorch{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names kOpenMpi{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                         "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Names kMvapich{"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
                         "MV2_COMM_WORLD_LOCAL_SIZE"};
constexpr Names kMpich{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};
constexpr Names kSlurm{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"};

/// Refuses numbers that cannot be those of one rank, quoting the pair that disagrees.
void check_ranges(const Variables& variables, const RankFacts& facts, const Names& names) {
  const auto clash = [&](const char* small, const char* large, const char* why) {
    refuse(text(variables.quote_all({small, large}), ": ", why),
           text("mend or unset ", small, " and ", large, "; the launcher (", facts.launcher,
                ") sets both"));
  };
  if (facts.world_size < 1)
    refuse(variables.quote(names.world_size) + ": a job has one rank at least", "unset it");
  if (facts.rank >= facts.world_size)
    clash(names.rank, names.world_size, "the rank is not below the number of ranks");
  if (facts.local_rank >= facts.local_world_size) {
    clash(names.local_rank, names.local_world_size,
          "the local rank is not below the number of local ranks");
  }
  if (facts.local_world_size > facts.world_size) {
    clash(names.local_world_size, names.world_size,
          "more ranks on one machine than there are in all");
  }
}

/// MASTER_ADDR and MASTER_PORT, where the user or the launcher gives them.
void read_meeting_point(const Variables& variables, RankFacts& facts) {
  if (const auto address = variables.text_of("MASTER_ADDR")) facts.master_address = *address;
  if (const auto port = variables.number("MASTER_PORT")) {
    if (*port < 1 || *port > 65'535)
      refuse(variables.quote("MASTER_PORT") + " is not a port", "give 1 to 65535");
    facts.master_port = *port;
  }
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

int divided_up(int whole, int part) { return (whole + part - 1) / part; }

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
    refuse(text(variables.quote_all({"RANK", "WORLD_SIZE", "LOCAL_RANK"}),
                ": no telling which device is this rank's"),
           "set LOCAL_RANK to the rank's index on its machine, or unset RANK and WORLD_SIZE");
  }
}

/// RANK and WORLD_SIZE, whoever set them.
Found from_torch_variables(const Variables& variables) {
  const auto rank = variables.number(kTorch.rank);
  const auto world_size = variables.number(kTorch.world_size);
  if (!rank && (!world_size || !variables.has("LOCAL_RANK"))) return std::nullopt;
  if (!rank || !world_size) {
    refuse(variables.quote_all({"RANK", "WORLD_SIZE"}) + ": one goes with the other",
           "unset it if it is a leftover, or set both");
  }
  RankFacts facts;
  facts.rank = *rank;
  facts.world_size = *world_size;
  read_meeting_point(variables, facts);
  read_launcher(variables, facts);
  read_local_ranks(variables, facts);
  check_ranges(variables, facts, kTorch);
  if (facts.world_size > 1 && (facts.master_address.empty() || facts.master_port == 0)) {
    refuse(text(variables.quote_all({"WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}),
                ": the ranks have no place to meet"),
           "set MASTER_ADDR and MASTER_PORT on all ranks to the machine of rank 0 and a free port "
           "there");
  }
  facts.node_rank = variables.first_number({"GROUP_RANK", "NODE_RANK"})
                        .value_or(facts.rank / facts.local_world_size);
  facts.node_count = variables.number("GROUP_WORLD_SIZE")
                         .value_or(divided_up(facts.world_size, facts.local_world_size));
  facts.restart_count = variables.number("TORCHELASTIC_RESTART_COUNT").value_or(0);
  return facts;
}

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

/// The batch script itself carries SLURM_PROCID=0 as well; a step has an id, or another rank than
/// 0.
bool is_slurm_step(const Variables& variables) {
  const std::string step = slurm_step(variables);
  if (!variables.has("SLURM_PROCID") || is_reserved_step(step)) return false;
  return !step.empty() || variables.number("SLURM_PROCID") != 0;
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
  refuse(text(variables.quote_all({"SLURM_NTASKS", "SLURM_NTASKS_PER_NODE"}), " on ",
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

Found from_slurm(const Variables& variables) {
  check_slurm_counts(variables);
  if (!is_slurm_step(variables)) return std::nullopt;
  const auto world_size =
      variables.first_number({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"});
  if (!world_size) {
    refuse(variables.quote_all({"SLURM_PROCID", "SLURM_NTASKS"}) + ": a task without their number",
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

Found from_mpi(const Variables& variables, const Names& names, const char* launcher,
               std::string job_id) {
  const auto rank = variables.number(names.rank);
  const auto world_size = variables.number(names.world_size);
  if (!rank && !world_size) return std::nullopt;
  if (!rank || !world_size) {
    refuse(variables.quote_all({names.rank, names.world_size}) + ": one goes with the other",
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

Found from_any_mpi(const Variables& variables) {
  if (auto facts = from_mpi(variables, kOpenMpi, "openmpi",
                            variables.first_text({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}))) {
    return facts;
  }
  if (auto facts =
          from_mpi(variables, kMvapich, "mvapich", variables.first_text({"MPIRUN_ID", "PMI_ID"})))
    return facts;
  return from_mpi(variables, kMpich, "mpich",
                  variables.first_text({"PMI_JOBID", "HYDI_CONTROL_FD", "PMI_PORT"}));
}

/// An indexed job tells a pod its index and not their number; that is WORLD_SIZE or PET_NNODES in
/// the manifest.
RankFacts from_kubernetes(const Variables& variables) {
  RankFacts facts;
  const auto index = variables.number("JOB_COMPLETION_INDEX");
  if (!index) return facts;
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
  if (facts.world_size > 1 && (facts.master_address.empty() || facts.master_port == 0)) {
    refuse(text(variables.quote_all({"WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}),
                ": the pods have no place to meet"),
           "set MASTER_ADDR to the first pod's name in the headless service, and MASTER_PORT");
  }
  facts.job_id = variables.first_text({"JOB_NAME", "MASTER_ADDR"});
  return facts;
}

/// Whether RANK and WORLD_SIZE are those of a launcher and not a leftover.
bool is_marked(const Variables& variables) {
  return variables.has("YOKE_JOB_ID") || variables.has("TORCHELASTIC_RUN_ID");
}

/// RANK and WORLD_SIZE that no launcher marked must say what the live launcher says; what they add
/// is the meeting point, which `live` has read already.
RankFacts confirmed(const Variables& variables, RankFacts live, const Names& names) {
  const auto rank = variables.number(kTorch.rank);
  const auto world_size = variables.number(kTorch.world_size);
  const bool contradict = rank.value_or(live.rank) != live.rank ||
                          world_size.value_or(live.world_size) != live.world_size;
  if (!contradict) return live;
  refuse(text(variables.quote_all({"RANK", "WORLD_SIZE"}), " contradict ",
              variables.quote_all({names.rank, names.world_size}), " of ", live.launcher),
         "unset RANK and WORLD_SIZE if they are leftovers, or start the program with torchrun or "
         "yoke launch");
}

const Names& names_of(const RankFacts& mpi) {
  if (mpi.launcher == "openmpi") return kOpenMpi;
  return mpi.launcher == "mvapich" ? kMvapich : kMpich;
}

std::string outer_notice(const Variables& variables, const RankFacts& inner, const Names& outer) {
  return text("ranks are those of ", inner.launcher, " (rank ", inner.rank, " of ",
              inner.world_size, "); the step around it (",
              variables.quote_all({outer.rank, outer.world_size}), ") is not counted");
}

}  // namespace

EnvironmentMap environment() {
  EnvironmentMap variables;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view whole(*entry);
    const std::size_t equals = whole.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    variables.emplace(whole.substr(0, equals), whole.substr(equals + 1));
  }
  return variables;
}

std::string value_or(const EnvironmentMap& variables, const std::string& name,
                     std::string fallback) {
  return Variables(variables).text_of(name).value_or(std::move(fallback));
}

RankFacts rank_facts(const EnvironmentMap& map) {
  const Variables variables(map);
  if (is_marked(variables)) {
    if (Found torch = from_torch_variables(variables)) {
      if (is_slurm_step(variables)) torch->notice = outer_notice(variables, *torch, kSlurm);
      return *torch;
    }
  }
  const Found slurm = from_slurm(variables);
  Found mpi = from_any_mpi(variables);
  const bool differ =
      mpi && slurm && (mpi->rank != slurm->rank || mpi->world_size != slurm->world_size);
  if (differ) {
    // mpirun starts its helpers as a step, one to a node: the ranks inside are its own.
    mpi->notice = outer_notice(variables, *mpi, kSlurm);
    return confirmed(variables, *mpi, names_of(*mpi));
  }
  if (slurm) return confirmed(variables, *slurm, kSlurm);
  if (mpi) return confirmed(variables, *mpi, names_of(*mpi));
  if (Found torch = from_torch_variables(variables)) return *torch;
  return from_kubernetes(variables);
}

}  // namespace yoke::core
