#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "image_commands.hpp"
#include "option_words.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"
#include "yoke/image/lint.hpp"

namespace yoke::cli {
namespace {

using core::text;
using image::Finding;
using image::Keep;
using image::Severity;

constexpr const char* kUsage =
    "usage: yoke image lint FILE... [--fix] [--keep torch|cuda] [--json]\n"
    "\n"
    "Names what is wrong with Dockerfiles and requirements files: versions that do not fit, GPU\n"
    "settings, secrets. Each finding has its line, the reason and the fix.\n"
    "\n"
    "  --fix               write the corrected file beside FILE, as FILE.fixed; where torch and "
    "CUDA\n"
    "                      contradict each other two files, FILE.keep-torch and FILE.keep-cuda\n"
    "  --keep torch|cuda   with --fix: write only that one, as FILE.fixed\n"
    "  --json              {\"findings\": [{file, id, line, severity, reason, fix}]}\n"
    "\n"
    "exit codes: 0 clean; 1 findings; 2 usage, or a file that cannot be read\n";

struct LintRequest {
  std::vector<std::string> files{};
  std::optional<Keep> keep{};
  bool fixes = false;
  bool json = false;
  bool help = false;
};

[[noreturn]] void refuse(std::string message) {
  throw Error(Code::invalid_argument, "yoke image lint: " + std::move(message),
              "see yoke image lint --help");
}

Keep keep_value(const std::string& value) {
  if (value == "torch") return Keep::torch;
  if (value == "cuda") return Keep::cuda;
  refuse(text("--keep '", value, "': allowed are torch and cuda"));
}

LintRequest parse(const std::vector<std::string>& words) {
  const OptionWords options = read_options({.command = "yoke image lint",
                                            .values = {"--keep"},
                                            .flags = {"--fix", "--json", "--help", "-h"}},
                                           words);
  LintRequest request{.files = options.rest,
                      .fixes = options.has("--fix"),
                      .json = options.has("--json"),
                      .help = options.has("--help") || options.has("-h")};
  if (const auto keep = options.value("--keep")) request.keep = keep_value(*keep);
  if (request.files.empty() && !request.help) refuse("no file is named");
  return request;
}

core::Json as_json(const std::string& file, const Finding& finding) {
  return {{"file", file},
          {"id", finding.id},
          {"line", finding.line},
          {"severity", image::name(finding.severity)},
          {"reason", finding.reason},
          {"fix", finding.fix}};
}

void print(const std::string& file, const Finding& finding) {
  const std::string severity(image::name(finding.severity));
  std::printf("%s:%d: %s: %s [%s]\n", file.c_str(), finding.line, severity.c_str(),
              finding.reason.c_str(), finding.id.c_str());
  if (finding.severity != Severity::ok) std::printf("    fix: %s\n", finding.fix.c_str());
}

/// "requirements.txt" with "fixed" is "requirements.fixed.txt", so that pip's tools still know it.
std::string beside(const std::string& file, const std::string& word) {
  const std::filesystem::path path(file);
  if (path.extension() != ".txt" && path.extension() != ".in") return file + "." + word;
  return (path.parent_path() / (path.stem().string() + "." + word + path.extension().string()))
      .string();
}

void write(const std::string& file, const std::string& content, image::FileKind kind,
           std::vector<std::string>& written) {
  core::write_atomically(file, content);
  written.push_back(file);
  for (const Finding& left : image::lint(content, kind)) {
    if (left.severity == Severity::ok) continue;
    core::say(core::Level::warning, text(file, ":", left.line, ": ", left.reason, " [", left.id,
                                         "]: not corrected; ", left.fix));
  }
}

std::vector<std::string> fix(const LintRequest& request, const std::string& file,
                             const std::string& content, image::FileKind kind) {
  std::vector<std::string> written;
  const std::string torch = image::corrected(content, kind, Keep::torch);
  const std::string cuda = image::corrected(content, kind, Keep::cuda);
  if (request.keep || torch == cuda) {
    const std::string& chosen = request.keep == Keep::cuda ? cuda : torch;
    if (chosen != content) write(beside(file, "fixed"), chosen, kind, written);
    return written;
  }
  write(beside(file, "keep-torch"), torch, kind, written);
  write(beside(file, "keep-cuda"), cuda, kind, written);
  return written;
}

}  // namespace

int image_lint_command(const std::vector<std::string>& words) try {
  const LintRequest request = parse(words);
  if (request.help) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  core::Json findings = core::Json::array();
  core::Json fixed = core::Json::array();
  bool faulty = false;
  for (const std::string& file : request.files) {
    const std::string content = core::read_file(file);
    const image::FileKind kind = image::file_kind(file, content);
    const std::vector<Finding> found = image::lint(content, kind);
    faulty |= image::has_faults(found);
    for (const Finding& finding : found) {
      if (request.json) {
        findings.push_back(as_json(file, finding));
      } else {
        print(file, finding);
      }
    }
    if (!request.fixes || !image::has_faults(found)) continue;
    for (const std::string& written : fix(request, file, content, kind)) {
      fixed.push_back(written);
      if (!request.json) std::printf("wrote %s\n", written.c_str());
    }
  }
  if (request.json) {
    core::Json out{{"findings", findings}};
    if (request.fixes) out["fixed"] = fixed;
    std::fputs(core::json_text(out).c_str(), stdout);
  }
  return faulty ? 1 : 0;
} catch (const Error& error) {
  core::say(core::Level::error, error.what());
  return 2;
}

}  // namespace yoke::cli
