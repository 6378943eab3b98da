#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "command.hpp"
#include "image_commands.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cli {
namespace {

constexpr std::array kImageCommands{
    Command{"build", "build an image in which torch, CUDA, Python and the rest fit",
            image_build_command},
    Command{"lock", "write which wheels, with their hashes, an image would hold",
            image_lock_command},
    Command{"render", "write what builds the image anywhere: Containerfile, lock, start script",
            image_render_command},
    Command{"extend", "add packages to an image without a change of its torch and CUDA",
            image_extend_command},
    Command{"lint", "name the faults of Dockerfiles and requirements files", image_lint_command},
    Command{"run", "start a program in an image, with the cards that were asked for",
            image_run_command},
    Command{"verify", "hold an image against its lock; find secrets, double CUDA, waste",
            image_verify_command},
};

std::string usage() {
  std::string out = "usage: yoke image COMMAND [OPTION...]\n\ncommands:\n";
  for (const Command& command : kImageCommands) {
    out += core::text("  ", command.name, std::string(12 - std::string(command.name).size(), ' '),
                      command.summary, "\n");
  }
  return out + "\n`yoke image COMMAND --help` for a command's options\n";
}

}  // namespace

int image_command(const std::vector<std::string>& words) {
  if (words.empty()) {
    std::fputs(usage().c_str(), stderr);
    return 2;
  }
  if (words[0] == "--help" || words[0] == "-h") {
    std::fputs(usage().c_str(), stdout);
    return 0;
  }
  const auto* command =
      std::find_if(kImageCommands.begin(), kImageCommands.end(),
                   [&](const Command& candidate) { return words[0] == candidate.name; });
  if (command != kImageCommands.end()) return command->run({words.begin() + 1, words.end()});
  std::vector<std::string> names;
  std::transform(kImageCommands.begin(), kImageCommands.end(), std::back_inserter(names),
                 [](const Command& one) { return std::string(one.name); });
  throw Error(Code::invalid_argument, core::text("yoke image: unknown command '", words[0], "'"),
              core::unknown_name_hint(words[0], names));
}

}  // namespace yoke::cli
