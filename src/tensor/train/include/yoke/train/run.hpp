#pragma once

#include <exception>
#include <functional>
#include <type_traits>
#include <utility>

#include "yoke/comm/world.hpp"

namespace yoke::train {

/// As yoke::run, for a function that returns the exit code.
int run_ranks(int argc, char** argv, const std::function<int(comm::World&)>& rank_main);

/// For a `main` of one's own, where an exception ends it: leaves the error for the launcher, which
/// then knows the rank that failed first from those that only lost it; without a launcher says it.
///
///   } catch (const std::exception& error) {
///     return yoke::report(error);
///   }
///
/// Returns: the exit code for `main` (docs/errors.md). Never throws.
int report(const std::exception& error) noexcept;

/// A whole training program: runs `rank_main` once per rank.
///
///   int main(int argc, char** argv) {
///     return yoke::run(argc, argv, [](yoke::World& world) { ... });
///   }
///
/// Started bare it starts the program again once per rank: YOKE_RANKS of them, else one per visible
/// GPU, else none (it is then the one rank itself). Started by yoke launch, torchrun, srun, mpirun
/// or Kubernetes it is one of their ranks. What `main` does before happens once per rank, and once
/// more in the parent. The parent never opens CUDA. `rank_main` takes World& and returns nothing or
/// an int, the exit code; argv is left alone. Words go to standard error, unless the program
/// attached a console of its own. Ranks: joining is collective. An exception that leaves
/// `rank_main` ends this rank with its words left for the
///   launcher, and the launcher ends the others.
/// Returns: the exit code for `main`: 0, what rank_main returned, or that of the error
/// (docs/errors.md). Never throws.
template <class RankMain>
int run(int argc, char** argv, RankMain&& rank_main) {
  return run_ranks(argc, argv, [&rank_main](comm::World& world) -> int {
    if constexpr (std::is_void_v<std::invoke_result_t<RankMain&, comm::World&>>) {
      std::forward<RankMain>(rank_main)(world);
      return 0;
    } else {
      return std::forward<RankMain>(rank_main)(world);
    }
  });
}

}  // namespace yoke::train

namespace yoke {
using train::report;
using train::run;
}  // namespace yoke
