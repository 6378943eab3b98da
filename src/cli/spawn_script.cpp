#include "spawn_script.hpp"

#include <algorithm>
#include <array>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cli {
namespace {

/// The source without its remarks, so that an example in one does not count.
std::string without_remarks(std::string_view source) {
  std::string out;
  for (const std::string& line : core::split(source, '\n')) {
    if (!core::trimmed(line).starts_with("#")) out += line + "\n";
  }
  return out;
}

}  // namespace

bool starts_its_own_ranks(std::string_view source) {
  constexpr std::array<std::string_view, 4> kSpawn{"mp.spawn(", "multiprocessing.spawn(",
                                                   "notebook_launcher(", "start_processes("};
  constexpr std::array<std::string_view, 4> kJoins{"LOCAL_RANK", "\"RANK\"", "'RANK'", "env://"};
  const std::string code = without_remarks(source);
  const auto has = [&](std::string_view word) { return code.find(word) != std::string::npos; };
  return std::any_of(kSpawn.begin(), kSpawn.end(), has) &&
         std::none_of(kJoins.begin(), kJoins.end(), has);
}

void refuse_spawn_script(const std::string& script, int ranks) {
  if (script.empty() || ranks < 2) return;
  std::string source;
  try {
    source = core::read_file(script);
  } catch (const Error&) {
    return;
  }
  if (!starts_its_own_ranks(source)) return;
  throw Error(Code::invalid_argument,
              core::text(script, " starts its ranks itself (mp.spawn), and each of ", ranks,
                         " ranks would start all of them"),
              core::text("yoke launch --ranks 1 -- python3 ", script,
                         " watches it as it is; to have Yoke start the ranks, call its worker "
                         "function with int(os.environ[\"RANK\"]) in place of mp.spawn"));
}

}  // namespace yoke::cli
