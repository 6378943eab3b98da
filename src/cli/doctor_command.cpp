#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command.hpp"
#include "doctor_text.hpp"
#include "option_words.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/environment.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"
#include "yoke/image/engine.hpp"

namespace yoke::cli {
namespace {

using core::text;

// Exit codes of doctor: docs/cmd/doctor.md.
constexpr int kOk = 0;
constexpr int kWarning = 1;
constexpr int kCouldNotLook = 2;
constexpr int kCannotTrain = 3;

constexpr const char* kUsage =
    "usage: yoke doctor [--json] [--only CHECK,...] [--skip CHECK,...] [--list]\n"
    "       yoke doctor --explain \"ERROR TEXT\"\n"
    "       yoke doctor --process PID\n"
    "       yoke doctor --image NAME|DIR|FILE.tar\n"
    "       yoke doctor --library FILE\n"
    "\n"
    "Looks at this machine and says whether it can train, and if not, the one thing to do. Nothing "
    "is\n"
    "imported, started or changed.\n"
    "\n"
    "  --only, --skip   checks by id, group or pattern: stack, driver.nodes, '*.nccl'\n"
    "  --list           the checks\n"
    "  --explain        what an error text means on this machine, and the line to change\n"
    "  --process        which libraries of CUDA and torch that process has mapped\n"
    "  --image          whether an image (an engine's, OCI layout or archive) would run here, by "
    "its labels\n"
    "  --library        the string ABI of a C++ library, and whether this Yoke links with it\n"
    "  --root DIR       look below DIR instead of /\n"
    "\n"
    "exit codes: 0 can train; 1 can train, with warnings; 2 usage, or could not look;\n"
    "            3 cannot train\n";

int print(const std::string& out, int code) {
  return std::fputs(out.c_str(), stdout) < 0 ? kCouldNotLook : code;
}

int exit_of(doctor::Verdict verdict) {
  switch (verdict) {
    case doctor::Verdict::ok: return kOk;
    case doctor::Verdict::warning: return kWarning;
    case doctor::Verdict::cannot_train: return kCannotTrain;
  }
  return kCouldNotLook;
}

int print_report(const doctor::Report& report, bool json) {
  const int code = print(json ? core::json_text(report_json(report)) : report_text(report),
                         exit_of(report.verdict()));
  if (!report.abandoned) return code;
  // A thread waits for a driver that does not answer; a normal end would wait for what it holds.
  std::fflush(stdout);
  std::_Exit(code);
}

int list_checks() {
  std::string out;
  for (const doctor::Check& check : doctor::all_checks())
    out += text(check.id, "  ", check.title,
                check.weight == doctor::Weight::blocks ? "" : " (a failure is a warning)", "\n");
  return print(out, kOk);
}

int process_id(const std::string& value) {
  const auto pid = core::parse_integer(value);
  if (!pid || *pid < 1 || *pid > 1 << 30)
    throw Error(Code::invalid_argument, text("yoke doctor: --process '", value, "' is no process"),
                "give its number, as ps shows it");
  return static_cast<int>(*pid);
}

int look_at_process(const doctor::Machine& machine, const std::string& pid, bool json) {
  const auto process = doctor::read_process(machine, process_id(pid));
  return print(json ? core::json_text(process_json(process)) : process_text(process),
               process.warnings.empty() ? kOk : kWarning);
}

int explain(const doctor::Machine& machine, const std::string& words, bool json) {
  const auto meanings = doctor::explain_text(words, machine);
  return print(json ? core::json_text(meanings_json(meanings)) : meanings_text(meanings),
               meanings.empty() ? kCouldNotLook : kOk);
}

/// The string ABI of this program's library, where that has two.
constexpr std::optional<stack::StringAbi> own_abi() {
#ifdef _GLIBCXX_USE_CXX11_ABI
  return _GLIBCXX_USE_CXX11_ABI ? stack::StringAbi::new_abi : stack::StringAbi::old_abi;
#else
  return std::nullopt;  // the portable front program, which has another C++ library
#endif
}

/// The string ABI of a library, beside this program's own.
int look_at_library(const std::string& file) {
  const auto abi = stack::string_abi_names(stack::ElfFile::open(file)).abi();
  if (!abi) return print(file + ": its names do not tell the string ABI\n", kCouldNotLook);
  const std::string found = text(file, ": ", name(*abi), " string ABI");
  const auto own = own_abi();
  if (!own) return print(found + "\n", kOk);
  const bool fits = *abi == *own;
  return print(text(found, "; this Yoke has the ", name(*own), " one: ",
                    fits ? "they fit\n"
                         : "they do not link; build Yoke against the torch that has it "
                           "(-DYOKE_TORCH_DIR)\n"),
               fits ? kOk : kCannotTrain);
}

/// Of a file or folder, else of an image that an engine here has; nothing is pulled.
doctor::Labels labels_of(const std::string& image) {
  const core::EnvironmentMap variables = core::environment();
  if (!std::filesystem::exists(image)) {
    const std::string name = image::full_name(image);
    for (const char* program : {"buildah", "podman", "docker"}) {
      if (!core::find_program(program, variables)) continue;
      const image::Engine engine = image::Engine::find(program, variables);
      if (engine.has(name)) return doctor::labels_of_config(engine.config(name), name);
    }
  }
  return doctor::read_image_labels(image);
}

const OptionTable& option_table() {
  static const OptionTable table{
      .command = "yoke doctor",
      .values = {"--only", "--skip", "--explain", "--process", "--image", "--library", "--root"},
      .flags = {"--json", "--list", "--help", "-h"}};
  return table;
}

int run(const OptionWords& words) {
  const bool json = words.has("--json");
  if (words.has("--list")) return list_checks();
  if (const auto file = words.value("--library")) return look_at_library(*file);
  const auto machine = std::make_shared<const doctor::Machine>(doctor::Sources{
      .root = words.value("--root").value_or("/"), .variables = core::environment()});
  if (const auto pid = words.value("--process")) return look_at_process(*machine, *pid, json);
  if (const auto error = words.value("--explain")) return explain(*machine, *error, json);
  if (const auto image = words.value("--image"))
    return print_report(doctor::judge_image(labels_of(*image), *machine), json);
  const auto checks = doctor::select(doctor::all_checks(),
                                     {.only = words.list("--only"), .skip = words.list("--skip")});
  return print_report(doctor::run_checks(checks, machine), json);
}

}  // namespace

int doctor_command(const std::vector<std::string>& words) try {
  const OptionWords given = read_options(option_table(), words);
  if (given.has("--help") || given.has("-h")) return print(kUsage, kOk);
  if (!given.rest.empty())
    throw Error(Code::invalid_argument, text("yoke doctor: unknown word '", given.rest[0], "'"),
                "yoke doctor --help lists the options");
  return run(given);
} catch (const Error& error) {
  core::say(core::Level::error, error.what());
  return kCouldNotLook;
}

}  // namespace yoke::cli
