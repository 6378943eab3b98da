#include "yoke/core/environment.hpp"

#include <unistd.h>

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "launchers.hpp"
#include "rank_variables.hpp"
#include "yoke/core/text.hpp"

namespace yoke::core {
namespace {

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
  refuse_variables(
      text(variables.quote_all({"RANK", "WORLD_SIZE"}), " contradict ",
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
    if (auto torch = from_torch_variables(variables)) {
      if (is_slurm_step(variables)) torch->notice = outer_notice(variables, *torch, kSlurm);
      return *torch;
    }
  }
  const auto slurm = from_slurm(variables);
  auto mpi = from_mpi(variables);
  const bool differ =
      mpi && slurm && (mpi->rank != slurm->rank || mpi->world_size != slurm->world_size);
  if (differ) {
    // mpirun starts its helpers as a step, one to a node: the ranks inside are its own.
    mpi->notice = outer_notice(variables, *mpi, kSlurm);
    return confirmed(variables, *mpi, names_of(*mpi));
  }
  if (slurm) return confirmed(variables, *slurm, kSlurm);
  if (mpi) return confirmed(variables, *mpi, names_of(*mpi));
  if (auto torch = from_torch_variables(variables)) return *torch;
  return from_kubernetes(variables).value_or(RankFacts{});
}

}  // namespace yoke::core
