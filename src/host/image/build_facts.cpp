#include "build_facts.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <utility>

#include "yoke/core/text.hpp"

namespace yoke::image {
namespace {

constexpr std::array<std::string_view, 24> kOptionsWithValue{"-i",
                                                             "--index-url",
                                                             "--extra-index-url",
                                                             "-f",
                                                             "--find-links",
                                                             "-r",
                                                             "--requirement",
                                                             "-c",
                                                             "--constraint",
                                                             "-e",
                                                             "--editable",
                                                             "-t",
                                                             "--target",
                                                             "--prefix",
                                                             "--root",
                                                             "--trusted-host",
                                                             "--platform",
                                                             "--python-version",
                                                             "--cache-dir",
                                                             "--timeout",
                                                             "--retries",
                                                             "--no-binary",
                                                             "--only-binary",
                                                             "--python"};

constexpr std::array<std::string_view, 8> kShortNames{"-i", "index-url",   "-f", "find-links",
                                                      "-r", "requirement", "-c", "constraint"};

std::string long_name(std::string_view option) {
  for (std::size_t i = 0; i < kShortNames.size(); i += 2) {
    if (option == kShortNames[i]) return std::string(kShortNames[i + 1]);
  }
  return std::string(option.substr(std::min(option.find_first_not_of('-'), option.size())));
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_number_dot_number(std::string_view text) {
  const std::size_t dot = text.find('.');
  return dot != std::string_view::npos && core::parse_integer(text.substr(0, dot)) &&
         core::parse_integer(text.substr(dot + 1));
}

/// "3.11" of python3.11 and pip3.11; nothing for python, python3, pip3.
std::string version_in_name(const std::string& program) {
  const std::size_t digit = program.find_first_of("0123456789");
  if (digit == std::string::npos) return {};
  const std::string number = program.substr(digit);
  return is_number_dot_number(number) ? number : "";
}

bool is_python(const std::string& name) {
  return name.starts_with("python") &&
         name.find_first_not_of("python0123456789.") == std::string::npos;
}

bool is_pip(const std::string& name) {
  return name == "pip" ||
         (name.starts_with("pip") && name.find_first_not_of("0123456789.", 3) == std::string::npos);
}

bool other_platform(const Requirement& requirement) {
  const std::string& marker = requirement.marker;
  for (const std::string_view word : {"darwin", "Darwin", "win32", "Windows", "aarch64", "arm64"}) {
    const std::size_t at = marker.find(word);
    if (at == std::string::npos) continue;
    const std::size_t sign = marker.find_last_of("=!", at);
    if (sign != std::string::npos && sign > 0 && marker[sign - 1] != '!') return true;
  }
  return false;
}

/// The place of the first argument after "pip install" in a command's words, 0 if it is no such
/// command.
std::size_t install_arguments(const std::vector<Word>& words, PipInstall& install) {
  std::size_t at = 0;
  constexpr std::array<std::string_view, 7> kBefore{"sudo", "env",  "time", "exec",
                                                    "nice", "then", "do"};
  while (at < words.size() &&
         (std::find(kBefore.begin(), kBefore.end(), words[at].text) != kBefore.end() ||
          words[at].text.starts_with("-") || words[at].text == "!" || words[at].text == "{")) {
    ++at;
  }
  if (at >= words.size()) return 0;
  const std::string& program = words[at].text;
  const std::string name = file_name(program);
  install.by_path = program.find('/') != std::string::npos && !program.starts_with("/usr/");
  if (is_python(name) && at + 2 < words.size() && words[at + 1].text == "-m") {
    install.python = version_in_name(name);
    at += 2;
  } else if (name == "uv" && at + 1 < words.size() && words[at + 1].text == "pip") {
    install.is_uv = true;
    ++at;
  } else if (is_pip(name)) {
    install.python = version_in_name(name);
  }
  if (!is_pip(file_name(words[at].text)) || at + 1 >= words.size()) return 0;
  ++at;
  while (at < words.size() && words[at].text.starts_with('-')) ++at;
  if (at >= words.size() || words[at].text != "install") return 0;
  install.program = words[at].where;
  return at + 1;
}

void take_flag(PipInstall& install, const std::string& word) {
  if (word == "-U" || word == "--upgrade") install.upgrades = true;
  if (word == "--break-system-packages") install.breaks_system = true;
  if (word == "--no-deps") install.without_dependencies = true;
}

std::optional<PipInstall> pip_install(const ShellCommand& command) {
  PipInstall install;
  const std::vector<Word>& words = command.words;
  std::size_t at = install_arguments(words, install);
  if (at == 0) return std::nullopt;
  install.where = {words.front().where.begin, words.back().where.end, words.front().where.line};
  for (; at < words.size(); ++at) {
    const std::string& word = words[at].text;
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, word.starts_with("--") ? equals : std::string::npos);
    if (!word.starts_with('-')) {
      const auto requirement = parse_requirement(word, words[at].where);
      if (requirement && !other_platform(*requirement))
        install.requirements.push_back(*requirement);
    } else if (std::find(kOptionsWithValue.begin(), kOptionsWithValue.end(), name) ==
               kOptionsWithValue.end()) {
      take_flag(install, word);
    } else if (name.size() != word.size()) {
      install.options.push_back({long_name(name), word.substr(equals + 1), words[at].where});
    } else if (at + 1 < words.size()) {
      ++at;
      install.options.push_back({long_name(name), words[at].text, words[at].where});
    }
  }
  for (const auto& [variable, option] : {std::pair{"PIP_INDEX_URL", "index-url"},
                                         std::pair{"PIP_EXTRA_INDEX_URL", "extra-index-url"}}) {
    const auto set = command.assignments.find(variable);
    if (set != command.assignments.end())
      install.options.push_back({option, set->second, install.where});
  }
  return install;
}

void take_variables(PipInstall& install, const Variables& variables) {
  for (const auto& [variable, option] :
       {std::pair{"PIP_INDEX_URL", "index-url"},
        std::pair{"PIP_EXTRA_INDEX_URL", "extra-index-url"},
        std::pair{"PIP_FIND_LINKS", "find-links"}, std::pair{"UV_INDEX_URL", "index-url"},
        std::pair{"UV_DEFAULT_INDEX", "index-url"}, std::pair{"UV_INDEX", "extra-index-url"},
        std::pair{"UV_EXTRA_INDEX_URL", "extra-index-url"},
        std::pair{"PIP_CONSTRAINT", "constraint"}}) {
    const auto set = variables.find(variable);
    if (set != variables.end() && !set->second.empty()) {
      install.options.push_back({option, set->second, install.where});
    }
  }
  const auto free = variables.find("PIP_BREAK_SYSTEM_PACKAGES");
  if (free != variables.end() && free->second != "0") install.breaks_system = true;
}

bool has_word(const ShellCommand& command, std::string_view text) {
  return std::any_of(command.words.begin(), command.words.end(),
                     [&](const Word& word) { return word.text == text; });
}

bool has_part(const ShellCommand& command, std::string_view part) {
  return std::any_of(command.words.begin(), command.words.end(),
                     [&](const Word& word) { return word.text.find(part) != std::string::npos; });
}

/// What a command does to the Python that later commands meet.
void take_command(StageFacts& stage, const ShellCommand& command) {
  const std::string program = file_name(command.words.front().text);
  if (program == "conda" || program == "mamba" || program == "micromamba" || program == "pyenv" ||
      has_part(command, "get-pip.py") || has_part(command, "Miniconda") ||
      has_part(command, "Miniforge") || has_part(command, "update-alternatives")) {
    stage.python.clear();
    stage.has_own_pip = true;
    stage.has_venv = true;
  }
  if (has_part(command, "EXTERNALLY-MANAGED")) stage.base.managed_externally = false;
  const bool makes_venv = has_word(command, "venv") || program == "virtualenv";
  if (makes_venv) stage.has_venv = true;
  if (makes_venv && program == "uv") {
    stage.python.clear();
    stage.has_own_pip = true;
  }
  for (const Word& word : command.words) {
    const std::string name = file_name(word.text);
    const std::string number = version_in_name(name);
    if (number.empty() || !is_python(name)) continue;
    if (makes_venv) stage.python = number;
    if (program == "ln") stage.python = number;
  }
  constexpr std::array<std::string_view, 7> kCompiled{
      "flash-attn", "flash_attn", "apex", "xformers", "setup.py", "nvcc", "detectron2"};
  for (const std::string_view part : kCompiled) {
    if (has_part(command, part)) stage.compiles_cuda = true;
  }
  if (program == "cmake" || program == "make" || program == "ninja") stage.compiles_cuda = true;
}

void take_install(StageFacts& stage, PipInstall install) {
  take_variables(install, stage.variables);
  if (install.find("pip") != nullptr &&
      (install.upgrades || !install.find("pip")->conditions.empty())) {
    stage.has_own_pip = true;
  }
  const bool builds =
      std::any_of(install.options.begin(), install.options.end(),
                  [](const RequirementOption& option) { return option.name == "editable"; });
  if (builds) stage.compiles_cuda = true;
  stage.installs.push_back(std::move(install));
}

bool copies_pip_settings(const Instruction& instruction) {
  const std::string& arguments = instruction.arguments.text();
  return (instruction.keyword == "COPY" || instruction.keyword == "ADD") &&
         (arguments.find("pip.conf") != std::string::npos ||
          arguments.find("uv.toml") != std::string::npos);
}

void take_path(StageFacts& stage, const std::string& path) {
  const std::string first = path.substr(0, path.find(':'));
  if (first.find("venv") != std::string::npos || first.find("conda") != std::string::npos ||
      first.find("env/bin") != std::string::npos) {
    stage.has_venv = true;
  }
}

void take_instruction(StageFacts& stage, const Instruction& instruction) {
  stage.instructions.push_back(&instruction);
  if (copies_pip_settings(instruction)) stage.has_pip_settings = true;
  for (const Instruction::Pair& pair : instruction.pairs) {
    if (instruction.keyword != "ENV" && instruction.keyword != "ARG") break;
    if (pair.has_value) stage.variables.insert_or_assign(pair.key, pair.value);
    if (instruction.keyword == "ENV" && pair.key == "PATH") take_path(stage, pair.value);
    if (pair.key == "FORCE_CUDA" || pair.key == "TORCH_CUDA_ARCH_LIST") stage.compiles_cuda = true;
  }
  if (instruction.keyword != "RUN") return;
  for (ShellCommand& command : shell_commands(instruction)) {
    take_command(stage, command);
    if (auto install = pip_install(command)) take_install(stage, std::move(*install));
    if (has_part(command, "pip.conf") ||
        (has_word(command, "config") && has_word(command, "set") && has_part(command, "index"))) {
      stage.has_pip_settings = true;
    }
    stage.commands.push_back(std::move(command));
  }
}

/// A later stage that copies from this one takes what it built: its venv stands there too.
StageFacts begin_stage(const Dockerfile& file, std::size_t number,
                       const std::vector<StageFacts>& before) {
  const Stage& stage = file.stages[number];
  StageFacts facts;
  const int parent = find_stage(file, stage.base.text, static_cast<int>(number));
  if (parent >= 0) {
    facts = before[static_cast<std::size_t>(parent)];
    facts.instructions.clear();
    facts.commands.clear();
  } else {
    facts.base = base_facts(stage.base);
    facts.python = facts.base.python;
    facts.base_word = stage.base;
  }
  facts.first_own_install = facts.installs.size();
  if (!stage.platform.empty()) facts.platform = stage.platform;
  return facts;
}

}  // namespace

const Requirement* PipInstall::find(std::string_view name) const {
  const auto found =
      std::find_if(requirements.begin(), requirements.end(),
                   [&](const Requirement& requirement) { return requirement.name == name; });
  return found == requirements.end() ? nullptr : &*found;
}

std::vector<std::string> PipInstall::indexes() const {
  std::vector<std::string> urls;
  for (const RequirementOption& option : options) {
    if (option.name == "index-url" || option.name == "extra-index-url" ||
        option.name == "find-links" || option.name == "default-index" || option.name == "index" ||
        option.name == "torch-backend") {
      urls.push_back(option.value);
    }
  }
  return urls;
}

std::vector<StageFacts> stage_facts(const Dockerfile& file) {
  std::vector<StageFacts> all;
  for (std::size_t i = 0; i < file.stages.size(); ++i) {
    StageFacts facts = begin_stage(file, i, all);
    for (const Instruction& instruction : file.stages[i].instructions) {
      take_instruction(facts, instruction);
    }
    all.push_back(std::move(facts));
  }
  return all;
}

PipInstall install_of(const RequirementsFile& file) {
  PipInstall install;
  install.options = file.options;
  for (const Requirement& requirement : file.requirements) {
    if (!other_platform(requirement)) install.requirements.push_back(requirement);
  }
  if (!install.requirements.empty()) install.where = install.requirements.front().where;
  return install;
}

}  // namespace yoke::image
