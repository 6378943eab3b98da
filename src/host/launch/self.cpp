#include "yoke/launch/self.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "yoke/core/console.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/core/text.hpp"

namespace yoke::launch {
namespace {

constexpr const char* kSelf = "/proc/self/exe";

/// The program's path, so that `ps` and debuggers name it; /proc's own link if the file was
/// replaced meanwhile.
std::string own_program() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink(kSelf, error);
  struct stat named{};
  struct stat running{};
  const bool same = !error && ::stat(path.c_str(), &named) == 0 && ::stat(kSelf, &running) == 0 &&
                    named.st_dev == running.st_dev && named.st_ino == running.st_ino;
  return same ? path.string() : kSelf;
}

RankCount wanted_ranks(const SelfOptions& options, const core::EnvironmentMap& variables) {
  const std::string asked = core::value_or(variables, "YOKE_RANKS");
  if (!asked.empty()) return rank_count(asked, "YOKE_RANKS", options.machine());
  if (options.ranks) return rank_count(std::to_string(*options.ranks), "ranks", options.machine());
  return rank_count({}, "ranks", options.machine());
}

}  // namespace

std::optional<int> run_self(int argc, char** argv, SelfOptions options) {
  const core::EnvironmentMap variables = core::environment();
  const core::RankFacts facts = core::rank_facts(variables);
  // A launcher that started one process for the whole job (a single Slurm task, one pod) left the
  // sharing to us.
  const bool placed = facts.launcher != "none" && facts.world_size > 1;
  if (placed || facts.launcher == "yoke" || facts.launcher == "torchrun") return std::nullopt;
  const RankCount count = wanted_ranks(options, variables);
  if (!count.notice.empty()) core::say(core::Level::info, count.notice);
  if (count.ranks == 1) return std::nullopt;
  options.launch.command.assign(argv, argv + argc);
  options.launch.program = own_program();
  options.launch.ranks = count.ranks;
  options.launch.listen = true;
  return supervise(options.launch).exit_code;
}

}  // namespace yoke::launch
