#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "command.hpp"
#include "program_main.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cli {
namespace {

constexpr std::array kCommands{
    Command{"train", "train a model on every device of this machine, and save it", train_command},
    Command{"eval", "evaluate trained weights", eval_command},
    Command{"launch", "start a program once per GPU, or as often as said, and watch it",
            launch_command},
    Command{"checkpoint", "list, check, show, convert and average what was saved",
            checkpoint_command},
    Command{"data", "inspect, verify, pack and measure training data", data_command},
    Command{"bench", "time training steps: where one goes, and every way on 1 to N devices",
            bench_command},
    Command{"doctor", "whether this machine can train, and if not, what to do", doctor_command},
    Command{"image", "check, build and run images in which the versions fit", image_command},
    Command{"stack", "which torch, CUDA, driver and Python fit each other", stack_command},
};

std::string usage() {
  std::string out =
      "usage: yoke COMMAND [OPTION...]\n"
      "\n"
      "Makes every GPU of a machine pull one PyTorch training run.\n"
      "\n"
      "commands:\n";
  for (const Command& command : kCommands) {
    const std::string name = command.name;
    out += "  " + name + std::string(12 - std::min<std::size_t>(10, name.size()), ' ') +
           command.summary + "\n";
  }
  return out +
         "\n"
         "  --help      this text; `yoke COMMAND --help` for a command's options\n"
         "  --version   Yoke's version\n"
         "\n"
         "exit codes: 0 done; 1 failed; 2 usage; 3 this machine cannot do it; 4 do not retry; "
         "128+n ended by signal n\n";
}

int unknown(const std::string& name) {
  std::vector<std::string> names;
  std::transform(kCommands.begin(), kCommands.end(), std::back_inserter(names),
                 [](const Command& command) { return std::string(command.name); });
  const char* kind = name.starts_with("-") ? "option" : "command";
  core::say(core::Level::error,
            core::text("unknown ", kind, " '", name, "' / ", core::unknown_name_hint(name, names)));
  return 2;
}

int run(const std::vector<std::string>& words) {
  if (words.empty()) {
    std::fputs(usage().c_str(), stderr);
    return 2;
  }
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    std::fputs(usage().c_str(), stdout);
    return 0;
  }
  if (words[0] == "--version") {
    std::puts("yoke " YOKE_VERSION);
    return 0;
  }
  const auto command =
      std::find_if(kCommands.begin(), kCommands.end(),
                   [&](const Command& candidate) { return words[0] == candidate.name; });
  if (command == kCommands.end()) return unknown(words[0]);
  return command->run({words.begin() + 1, words.end()});
}

}  // namespace
}  // namespace yoke::cli

int main(int argc, char** argv) { return yoke::cli::program_main(argc, argv, yoke::cli::run); }
