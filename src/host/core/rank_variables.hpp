#pragma once

#include <initializer_list>
#include <optional>
#include <string>

#include "yoke/core/environment.hpp"

namespace yoke::core {

// What the launchers' readers share: variables with their types, and refusals that quote them.

// Throws invalid_argument.
[[noreturn]] void refuse_variables(std::string message, std::string hint);

// The map with typed access; an empty value counts as absent.
class Variables {
 public:
  explicit Variables(const EnvironmentMap& map) : map_(map) {}

  [[nodiscard]] std::optional<std::string> text_of(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& name) const { return text_of(name).has_value(); }

  // Errors: invalid_argument for what is no whole number from 0.
  [[nodiscard]] std::optional<int> number(const std::string& name) const;

  // The first of `names` that is set.
  [[nodiscard]] std::optional<int> first_number(std::initializer_list<const char*> names) const;
  [[nodiscard]] std::string first_text(std::initializer_list<const char*> names) const;

  // "NAME=value" or "NAME (not set)".
  [[nodiscard]] std::string quote(const std::string& name) const;
  [[nodiscard]] std::string quote_all(std::initializer_list<const char*> names) const;

 private:
  const EnvironmentMap& map_;
};

// The names under which one launcher gives the numbers of a rank.
struct Names {
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_world_size;
};

inline constexpr Names kTorch{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
inline constexpr Names kOpenMpi{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
inline constexpr Names kMvapich{"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE",
                                "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"};
inline constexpr Names kMpich{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};
inline constexpr Names kSlurm{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID",
                              "SLURM_NTASKS_PER_NODE"};

// Refuses numbers that cannot be those of one rank, quoting the pair that disagrees.
void check_ranges(const Variables& variables, const RankFacts& facts, const Names& names);

// MASTER_ADDR and MASTER_PORT, where the user or the launcher gives them.
void read_meeting_point(const Variables& variables, RankFacts& facts);

// Refuses several ranks or pods (`who`) without both of them.
void check_meeting_point(const Variables& variables, const RankFacts& facts, const char* who,
                         const char* hint);

[[nodiscard]] constexpr int divided_up(int whole, int part) { return (whole + part - 1) / part; }

}  // namespace yoke::core
