#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "rules.hpp"
#include "yoke/core/text.hpp"

namespace yoke::image {
namespace {

using core::text;
using stack::Arch;

/// Removes the pair, with its instruction where it is the only one there.
std::vector<Edit> removal(const Instruction& instruction, const Instruction::Pair& pair) {
  if (instruction.pairs.size() != 1) return {{pair.where, ""}};
  return {{instruction.where, "# " + instruction.keyword + " " + pair.key + " was here"}};
}

void check_visible(const Instruction& instruction, const Instruction::Pair& pair,
                   const Report& report) {
  if (pair.key != "NVIDIA_VISIBLE_DEVICES" && pair.key != "CUDA_VISIBLE_DEVICES") return;
  if (pair.value.empty() || pair.value == "void" || pair.value == "none") return;
  report({.id = "visible-devices",
          .line = pair.where.line,
          .severity = Severity::warning,
          .reason = text(
              pair.key, "=", pair.value,
              " in an image chooses cards for whoever runs it: a pod gets what it was not given"),
          .fix = "take it out; the one who starts the container says it",
          .edits = removal(instruction, pair)});
}

void check_capabilities(const Instruction::Pair& pair, const Report& report) {
  if (pair.key != "NVIDIA_DRIVER_CAPABILITIES" || pair.value.find('$') != std::string::npos) return;
  const std::vector<std::string> parts = core::split(pair.value, ',');
  const auto has = [&](std::string_view word) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](const std::string& part) { return core::trimmed(part) == word; });
  };
  if (pair.value.empty() || has("all") || has("compute")) return;
  report({.id = "driver-capabilities",
          .line = pair.where.line,
          .reason = text("NVIDIA_DRIVER_CAPABILITIES=", pair.value, " leaves libcuda.so out"),
          .fix = "write compute,utility",
          .edits = {{pair.where, "NVIDIA_DRIVER_CAPABILITIES=compute,utility"}}});
}

/// cuda>=12.8 stops a driver of 12.4 that CUDA's rule of minor versions would serve.
void check_require(const Instruction& instruction, const Instruction::Pair& pair,
                   const Report& report) {
  if (!pair.key.starts_with("NVIDIA_REQUIRE_") || pair.value.find(' ') != std::string::npos) return;
  constexpr std::string_view kLeast = "cuda>=";
  const std::size_t at = pair.value.find(kLeast);
  if (at == std::string::npos || pair.value.find("driver") != std::string::npos) return;
  const std::string number =
      pair.value.substr(at + kLeast.size(), pair.value.find(',', at) - at - kLeast.size());
  const std::size_t dot = number.find('.');
  if (dot == std::string::npos || number.substr(dot) == ".0") return;
  report({.id = "require-cuda",
          .line = pair.where.line,
          .severity = Severity::warning,
          .reason = text(pair.key, "=", pair.value, " refuses drivers of CUDA ",
                         number.substr(0, dot), " that would run it"),
          .fix = text("write cuda>=", number.substr(0, dot), ".0, or take it out"),
          .edits = removal(instruction, pair)});
}

void check_library_path(const Scene& scene, const Instruction& instruction,
                        const Instruction::Pair& pair, const Report& report) {
  if (pair.key != "LD_LIBRARY_PATH" || !scene.torch) return;
  const std::vector<std::string> folders = core::split(pair.value, ':');
  const auto found = std::find_if(folders.begin(), folders.end(), [](const std::string& folder) {
    return folder.find("/cuda") != std::string::npos || folder.find("cudnn") != std::string::npos;
  });
  if (found == folders.end()) return;
  report({.id = "library-path",
          .line = pair.where.line,
          .severity = Severity::warning,
          .reason = text("LD_LIBRARY_PATH with ", *found,
                         " puts other CUDA libraries before the wheel's"),
          .fix = "take it out: the wheel finds its own",
          .edits = removal(instruction, pair)});
}

/// What nvcc of that CUDA can make code for.
bool can_target(const std::string& cuda, const Arch& arch) {
  const auto version = stack::Version::parse(cuda);
  if (!version) return true;
  const auto at_least = [&](std::string_view least) {
    return *version >= *stack::Version::parse(least);
  };
  if (at_least("13.0") && arch < Arch{7, 5}) return false;
  if (!at_least("12.8") && arch >= Arch{10, 0}) return false;
  return at_least("11.8") || arch < Arch{8, 9};
}

void check_arch_list(const Scene& scene, const Instruction::Pair& pair, const Report& report) {
  if (pair.key != "TORCH_CUDA_ARCH_LIST") return;
  const BaseFacts& base = scene.stage.base;
  const std::string cuda = base.flavour == "devel" ? base.cuda : cuda_of_wheel(scene.wheel);
  std::string list = pair.value;
  std::replace(list.begin(), list.end(), ';', ' ');
  for (const std::string& part : core::split(list, ' ')) {
    const auto arch = Arch::parse(part.substr(0, part.find('+')));
    if (cuda.empty() || !arch || can_target(cuda, *arch)) continue;
    report({.id = "arch-list",
            .line = pair.where.line,
            .reason = text("nvcc of CUDA ", cuda, " makes no code for ", arch->dotted()),
            .fix = text("leave ", part, " out, or take another CUDA")});
    return;
  }
}

bool is_driver_package(const std::string& name) {
  if (name.starts_with("libnvidia-container") || name.starts_with("nvidia-container")) return false;
  return name.starts_with("nvidia-driver") || name.starts_with("nvidia-utils") ||
         name.starts_with("libnvidia-") || name.starts_with("nvidia-kernel") ||
         name.starts_with("cuda-drivers") || name == "libcuda1" || name == "nvidia-smi" ||
         name == "cuda";
}

bool installs_packages(const ShellCommand& command) {
  constexpr std::array<std::string_view, 6> kManagers{"apt-get", "apt",      "yum",
                                                      "dnf",     "microdnf", "aptitude"};
  bool is_manager = false;
  bool is_install = false;
  for (const Word& word : command.words) {
    is_manager |= std::find(kManagers.begin(), kManagers.end(), word.text) != kManagers.end();
    is_install |= word.text == "install";
  }
  return is_manager && is_install;
}

void check_package(const Word& word, const Report& report) {
  const std::string name = word.text.substr(0, word.text.find_first_of("=:"));
  if (is_driver_package(name)) {
    report({.id = "driver-inside",
            .line = word.where.line,
            .reason = text(name, " puts a driver into the image, which meets the host's other one"),
            .fix = "take it out: the driver comes in when the container starts",
            .edits = {{word.where, ""}}});
  } else if (name.starts_with("cuda-compat-")) {
    report({.id = "compat-library",
            .line = word.where.line,
            .severity = Severity::warning,
            .reason = text(name, " fails with error 804 on cards that are not for data centres"),
            .fix = "take it out, or ship it in an image of its own",
            .edits = {{word.where, ""}}});
  }
}

void check_copied_driver(const Instruction& instruction, const Report& report) {
  if (instruction.keyword != "COPY" && instruction.keyword != "ADD") return;
  for (const std::string_view library :
       {"libcuda.so", "libnvidia-ml.so", "libnvidia-ptxjitcompiler.so"}) {
    if (instruction.arguments.text().find(library) == std::string::npos) continue;
    report(
        {.id = "driver-inside",
         .line = instruction.where.line,
         .reason = text(library, " is a part of the host's driver and is of no use with another"),
         .fix = "take it out: the driver comes in when the container starts"});
  }
}

void check_permissions(const ShellCommand& command, const Report& report) {
  if (command.words.front().text != "chmod") return;
  for (const Word& word : command.words) {
    if (word.text != "777" && word.text != "0777" && word.text != "a+rwx" && word.text != "a+rwX")
      continue;
    report(
        {.id = "world-writable",
         .line = word.where.line,
         .severity = Severity::warning,
         .reason = text("chmod ", word.text, " lets every user of the machine change these files"),
         .fix = "let the caller's user in when the container starts (NB_UID, --user)"});
  }
}

}  // namespace

void check_settings(const Scene& scene, const Report& report) {
  for (const Instruction* instruction : scene.stage.instructions) {
    if (instruction->keyword != "ENV" && instruction->keyword != "ARG") continue;
    for (const Instruction::Pair& pair : instruction->pairs) {
      check_arch_list(scene, pair, report);
      if (instruction->keyword != "ENV") continue;
      check_visible(*instruction, pair, report);
      check_capabilities(pair, report);
      check_require(*instruction, pair, report);
      check_library_path(scene, *instruction, pair, report);
    }
  }
}

void check_packages(const Scene& scene, const Report& report) {
  for (const ShellCommand& command : scene.stage.commands) {
    check_permissions(command, report);
    if (!installs_packages(command)) continue;
    for (const Word& word : command.words) check_package(word, report);
  }
  for (const Instruction* instruction : scene.stage.instructions) {
    check_copied_driver(*instruction, report);
  }
}

}  // namespace yoke::image
