#pragma once

#include <optional>

#include "rank_variables.hpp"
#include "yoke/core/environment.hpp"

namespace yoke::core {

// Each reads one launcher's variables; nothing where it set none.
// Errors: invalid_argument, as rank_facts().

// RANK and WORLD_SIZE, whoever set them.
[[nodiscard]] std::optional<RankFacts> from_torch_variables(const Variables& variables);

// The batch script itself carries SLURM_PROCID=0 as well; a step has an id, or another rank than 0.
[[nodiscard]] bool is_slurm_step(const Variables& variables);
[[nodiscard]] std::optional<RankFacts> from_slurm(const Variables& variables);

// Open MPI, MVAPICH, MPICH, Intel MPI.
[[nodiscard]] std::optional<RankFacts> from_mpi(const Variables& variables);

// An indexed job tells a pod its index and not their number; that is WORLD_SIZE or PET_NNODES in
// the manifest.
[[nodiscard]] std::optional<RankFacts> from_kubernetes(const Variables& variables);

}  // namespace yoke::core
