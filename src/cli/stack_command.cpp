#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "command.hpp"
#include "inventory_text.hpp"
#include "option_words.hpp"
#include "stack_text.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"
#include "yoke/stack/stack.hpp"

namespace yoke::cli {
namespace {

using core::text;

constexpr int kDone = 0;
constexpr int kDoesNotFit = 1;

constexpr const char* kUsage =
    "usage: yoke stack resolve [--torch V] [--gpu ARCH|NAME] [--driver V] [--python V] [--cuda V]\n"
    "                          [--glibc V] [--abi old|new] [--json] [--matrix FILE]\n"
    "       yoke stack show [TORCH] [--json] [--matrix FILE]\n"
    "       yoke stack show --installed [--site DIR] [--json]\n"
    "       yoke stack explain \"REQUIREMENT...\" [--index-url URL] [--python V] [--pip V]\n"
    "                          [--glibc V] [--json] [--matrix FILE]\n"
    "\n"
    "Which torch, CUDA, cuDNN, NCCL, driver, Python and glibc fit each other.\n"
    "\n"
    "  resolve  the newest set that fits, or what excludes which set and the nearest that do\n"
    "  show     what is known of all releases, or of one; --installed: what lies in the Python "
    "that\n"
    "           a shell would start, or in DIR, read from its files\n"
    "  explain  what is wrong with a list of packages, and the sets that would fit\n"
    "\n"
    "  --torch 2.9, 2.9.1, '>=2.8,<2.10'   --gpu sm_120, 12.0, 'RTX 5090'; several with commas\n"
    "  --cuda 12, 12.8, cu128, none        --matrix: another file than the built-in matrix\n"
    "\n"
    "exit codes: 0 fits, nothing wrong; 1 does not fit; 2 usage\n";

[[noreturn]] void refuse(const std::string& option, const std::string& value,
                         const std::string& hint) {
  throw Error(Code::invalid_argument,
              text("yoke stack: ", option, " '", value, "' is not understood"), hint);
}

/// Reads the value of an option, if it was given, by a function that gives nothing for a wrong one.
template <class Read>
auto read_value(const OptionWords& words, const std::string& option, const std::string& hint,
                const Read& read) -> decltype(read(std::string())) {
  const auto value = words.value(option);
  if (!value) return {};
  auto out = read(*value);
  if (!out) refuse(option, *value, hint);
  return out;
}

stack::Matrix matrix_of(const OptionWords& words) {
  const auto file = words.value("--matrix");
  return file ? stack::Matrix::read(*file) : stack::Matrix::built_in();
}

std::vector<stack::CardFacts> cards_of(const OptionWords& words, const stack::Matrix& matrix) {
  std::vector<stack::CardFacts> cards;
  for (const std::string& word : words.list("--gpu")) {
    const stack::CardKind* known = matrix.card(word);
    const auto arch = known != nullptr ? known->arch : stack::Arch::parse(word);
    if (!arch) refuse("--gpu", word, "give sm_90, 9.0, or a card's name such as H100");
    cards.push_back(
        {.arch = arch, .kind = known != nullptr ? known->kind : stack::CardClass::unknown});
  }
  return cards;
}

std::optional<std::string> python_version(const std::string& value) {
  const bool free_threaded = value.ends_with("t");
  const auto version =
      stack::Version::parse(value.substr(0, value.size() - (free_threaded ? 1 : 0)));
  if (!version || version->release().size() < 2) return std::nullopt;
  return version->series(2) + (free_threaded ? "t" : "");
}

std::optional<stack::StringAbi> string_abi(const std::string& value) {
  if (value == "old") return stack::StringAbi::old_abi;
  if (value == "new") return stack::StringAbi::new_abi;
  return std::nullopt;
}

stack::Wishes wishes_of(const OptionWords& words, const stack::Matrix& matrix) {
  return {
      .torch = read_value(words, "--torch", "give 2.9, 2.9.1 or '>=2.8,<2.10'",
                          stack::Specifiers::parse_loosely),
      .cards = cards_of(words, matrix),
      .driver =
          read_value(words, "--driver", "give a version such as 570.26", stack::Version::parse),
      .python = read_value(words, "--python", "give a version such as 3.12", python_version),
      .cuda = read_value(words, "--cuda", "give 12, 12.8, cu128 or none", stack::parse_cuda_wish),
      .glibc = read_value(words, "--glibc", "give a version such as 2.28", stack::Version::parse),
      .abi = read_value(words, "--abi", "give old or new", string_abi)};
}

int print(const std::string& out, int code) {
  return std::fputs(out.c_str(), stdout) < 0 ? 1 : code;
}

int resolve_command(const OptionWords& words) {
  if (!words.rest.empty()) refuse("the word", words.rest[0], "wishes are options: --torch 2.9");
  const stack::Matrix matrix = matrix_of(words);
  const stack::Wishes wishes = wishes_of(words, matrix);
  const stack::Resolution resolution = stack::resolve(matrix, wishes);
  const int code = resolution.fits.empty() ? kDoesNotFit : kDone;
  return print(words.has("--json") ? core::json_text(resolution_json(matrix, resolution))
                                   : resolution_text(resolution, wishes),
               code);
}

int show_installed(const OptionWords& words, const stack::Matrix& matrix) {
  stack::PythonPlace python;
  if (words.values.contains("--site")) {
    for (const std::string& folder : words.values.at("--site")) python.folders.emplace_back(folder);
  } else {
    python = stack::find_python(core::environment());
  }
  const Installed installed = read_installed(matrix, python);
  return print(
      words.has("--json") ? core::json_text(installed_json(installed)) : installed_text(installed),
      kDone);
}

int show_command(const OptionWords& words) {
  const stack::Matrix matrix = matrix_of(words);
  if (words.has("--installed")) return show_installed(words, matrix);
  if (words.rest.empty())
    return print(words.has("--json") ? core::json_text(matrix_json(matrix)) : matrix_text(matrix),
                 kDone);
  const auto version = stack::Version::parse(words.rest[0]);
  const stack::Release* release = version ? matrix.release(*version) : nullptr;
  if (release == nullptr)
    throw Error(Code::not_found,
                text("yoke stack show: no torch ", words.rest[0], " in the matrix"),
                "yoke stack show lists those that it has");
  return print(
      words.has("--json") ? core::json_text(release_json(*release)) : release_text(*release),
      kDone);
}

int explain_command(const OptionWords& words) {
  std::vector<std::string> parts;
  for (const std::string& word : words.rest) {
    for (std::string& part : core::split(word, ' ')) {
      if (!part.empty()) parts.push_back(std::move(part));
    }
  }
  if (parts.empty())
    throw Error(Code::invalid_argument, "yoke stack explain: no requirement given",
                "for example: yoke stack explain \"torch==2.9.1+cu126 torchvision==0.24.1+cu126\"");
  const stack::Matrix matrix = matrix_of(words);
  stack::InstallPlan plan = stack::read_install_words(parts);
  for (const char* option : {"--index-url", "--extra-index-url"}) {
    if (const auto index = words.value(option)) plan.indexes.push_back(*index);
  }
  plan.python = read_value(words, "--python", "give a version such as 3.12", python_version);
  plan.pip = read_value(words, "--pip", "give a version such as 23.0", stack::Version::parse);
  plan.glibc = read_value(words, "--glibc", "give a version such as 2.28", stack::Version::parse);
  const stack::Explanation explanation = stack::explain(matrix, plan);
  const int code = explanation.worst() < stack::Severity::warning ? kDone : kDoesNotFit;
  return print(words.has("--json") ? core::json_text(explanation_json(explanation))
                                   : explanation_text(explanation),
               code);
}

const OptionTable& option_table() {
  static const OptionTable table{
      .command = "yoke stack",
      .values = {"--torch", "--gpu", "--driver", "--python", "--cuda", "--glibc", "--abi", "--pip",
                 "--matrix", "--site", "--index-url", "--extra-index-url"},
      .flags = {"--json", "--installed", "--help", "-h"}};
  return table;
}

}  // namespace

int stack_command(const std::vector<std::string>& words) {
  const OptionWords given = read_options(option_table(), words);
  if (given.has("--help") || given.has("-h")) return print(kUsage, kDone);
  const std::vector<std::pair<std::string, int (*)(const OptionWords&)>> actions{
      {"resolve", resolve_command}, {"show", show_command}, {"explain", explain_command}};
  std::vector<std::string> names;
  OptionWords rest = given;
  if (!rest.rest.empty()) rest.rest.erase(rest.rest.begin());
  for (const auto& [name, run] : actions) {
    if (!given.rest.empty() && given.rest[0] == name) return run(rest);
    names.push_back(name);
  }
  if (given.rest.empty()) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  throw Error(Code::invalid_argument, text("yoke stack: unknown word '", given.rest[0], "'"),
              core::unknown_name_hint(given.rest[0], names));
}

}  // namespace yoke::cli
