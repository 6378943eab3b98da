#include <cstdio>
#include <string>
#include <vector>

#include "command.hpp"
#include "launch_options.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cli {
namespace {

/// Under srun or mpirun with several tasks each would start a job of its own, all of one size and
/// none of them whole. What RANK and WORLD_SIZE say does not matter: the ranks get new ones.
void refuse_as_task(core::EnvironmentMap variables) {
  for (const char* name : {"RANK", "WORLD_SIZE"}) variables.erase(name);
  const core::RankFacts facts = core::rank_facts(variables);
  if (facts.world_size == 1) return;
  throw Error(Code::unsupported,
              core::text("yoke launch: this is rank ", facts.rank, " of ", facts.world_size, " of ",
                         facts.launcher, ", and yoke launch starts the ranks of one machine"),
              core::text("start the program itself by ", facts.launcher,
                         ", one process per GPU; it reads the variables"));
}

}  // namespace

int launch_command(const std::vector<std::string>& words) {
  LaunchRequest request = parse_launch(words);
  if (request.help) {
    std::fputs(launch_usage().data(), stdout);
    return 0;
  }
  const core::EnvironmentMap variables = core::environment();
  refuse_as_task(variables);
  if (request.ranks.empty()) {
    request.ranks = core::value_or(variables, "YOKE_RANKS");
    request.ranks_option = "YOKE_RANKS";
  }
  const launch::RankCount count =
      launch::rank_count(request.ranks, request.ranks_option, launch::machine_resources());
  if (!count.notice.empty()) core::say(core::Level::info, count.notice);
  request.options.ranks = count.ranks;
  return launch::supervise(request.options).exit_code;
}

}  // namespace yoke::cli
