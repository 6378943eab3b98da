#include <cstdio>
#include <string>
#include <vector>

#include "command.hpp"
#include "launch_options.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/environment.hpp"

namespace yoke::cli {

int launch_command(const std::vector<std::string>& words) {
  LaunchRequest request = parse_launch(words);
  if (request.help) {
    std::fputs(launch_usage().data(), stdout);
    return 0;
  }
  if (request.ranks.empty()) {
    request.ranks = core::value_or(core::environment(), "YOKE_RANKS");
    request.ranks_option = "YOKE_RANKS";
  }
  const launch::RankCount count =
      launch::rank_count(request.ranks, request.ranks_option, launch::machine_resources());
  if (!count.notice.empty()) core::say(core::Level::info, count.notice);
  request.options.ranks = count.ranks;
  return launch::supervise(request.options).exit_code;
}

}  // namespace yoke::cli
