#include "doctor_text.hpp"

#include <cstddef>

#include "yoke/core/text.hpp"

namespace yoke::cli {
namespace {

using core::Json;
using core::text;

constexpr const char* kSchema = "yoke.doctor/1";

std::string padded(std::string word, std::size_t width) {
  word.append(word.size() < width ? width - word.size() : 1, ' ');
  return word;
}

/// The last line: the verdict, and the first thing that stops training.
std::string verdict_text(const doctor::Report& report) {
  switch (report.verdict()) {
    case doctor::Verdict::ok: return "can train\n";
    case doctor::Verdict::warning: return "nothing stops training; see the warnings\n";
    case doctor::Verdict::cannot_train: break;
  }
  for (const doctor::Result& result : report.results) {
    const bool blocks = result.weight == doctor::Weight::blocks;
    if (blocks && result.finding.status == doctor::Status::fail)
      return text("cannot train: ", result.finding.text, "\n  do: ", result.finding.fix, "\n");
  }
  return "cannot train\n";
}

std::string version_text(const std::optional<stack::LibraryVersion>& version) {
  return version ? version->version.text() : "version not read";
}

}  // namespace

std::string report_text(const doctor::Report& report) {
  std::string out;
  for (const doctor::Result& result : report.results) {
    const doctor::Finding& finding = result.finding;
    if (finding.status == doctor::Status::skip) continue;
    out += padded(std::string(name(finding.status)), 5) + padded(result.title, 22) + finding.text +
           "\n";
    if (!finding.fix.empty()) out += padded("", 27) + "fix: " + finding.fix + "\n";
  }
  return out + verdict_text(report);
}

Json report_json(const doctor::Report& report) {
  Json out{{"schema", kSchema}, {"verdict", name(report.verdict())}, {"checks", Json::array()}};
  for (const doctor::Result& result : report.results) {
    out["checks"].push_back({{"id", result.id},
                             {"title", result.title},
                             {"status", name(result.finding.status)},
                             {"blocks", result.weight == doctor::Weight::blocks},
                             {"text", result.finding.text},
                             {"fix", result.finding.fix},
                             {"ms", static_cast<double>(result.took.count()) / 1000.0}});
  }
  return out;
}

std::string meanings_text(const std::vector<doctor::Meaning>& meanings) {
  if (meanings.empty())
    return "this text is not known; yoke doctor without --explain looks at the machine\n";
  std::string out;
  for (const doctor::Meaning& meaning : meanings) {
    out += meaning.id + ": " + meaning.reason + "\n";
    if (!meaning.seen.empty()) out += "  seen here: " + meaning.seen + "\n";
    out += "  change: " + meaning.change + "\n";
  }
  return out;
}

Json meanings_json(const std::vector<doctor::Meaning>& meanings) {
  Json out{{"schema", kSchema}, {"meanings", Json::array()}};
  for (const doctor::Meaning& meaning : meanings) {
    out["meanings"].push_back({{"id", meaning.id},
                               {"reason", meaning.reason},
                               {"seen", meaning.seen},
                               {"change", meaning.change}});
  }
  return out;
}

std::string process_text(const doctor::ProcessLibraries& process) {
  std::string out = text("process ", process.pid, " (", process.command, ")\n");
  for (const doctor::MappedLibrary& library : process.libraries)
    out += text("  ", padded(library.kind, 15), padded(version_text(library.version), 20),
                library.file.string(), "\n");
  if (process.libraries.empty()) out += "  none of CUDA's or torch's libraries is mapped\n";
  for (const std::string& warning : process.warnings) out += "warn " + warning + "\n";
  return out;
}

Json process_json(const doctor::ProcessLibraries& process) {
  Json out{{"schema", kSchema},
           {"pid", process.pid},
           {"command", process.command},
           {"libraries", Json::array()},
           {"warnings", process.warnings}};
  for (const doctor::MappedLibrary& library : process.libraries) {
    out["libraries"].push_back(
        {{"kind", library.kind},
         {"file", library.file.string()},
         {"version", library.version ? Json(library.version->version.text()) : Json(nullptr)},
         {"told_by", library.version ? Json(library.version->told_by) : Json(nullptr)},
         {"deleted", library.deleted}});
  }
  return out;
}

}  // namespace yoke::cli
