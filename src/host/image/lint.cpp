#include "yoke/image/lint.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "rules.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::image {
namespace {

/// One finding of a kind for a line, in the order of lines; the ok ones last among equals.
std::vector<Finding> in_order(std::vector<Finding> findings) {
  std::set<std::tuple<int, std::string, std::string>> seen;
  std::vector<Finding> kept;
  for (Finding& finding : findings) {
    if (seen.emplace(finding.line, finding.id, finding.reason).second)
      kept.push_back(std::move(finding));
  }
  std::stable_sort(kept.begin(), kept.end(),
                   [](const Finding& a, const Finding& b) { return a.line < b.line; });
  return kept;
}

void take_faults(const std::vector<SyntaxFault>& faults, std::vector<Finding>& findings) {
  for (const SyntaxFault& fault : faults) {
    findings.push_back(
        {.id = "syntax", .line = fault.line, .reason = fault.reason, .fix = fault.fix});
  }
}

void check(const Scene& scene, const Report& report) {
  check_versions(scene, report);
  check_environment(scene, report);
  if (!scene.is_dockerfile) return;
  check_settings(scene, report);
  check_packages(scene, report);
  check_secrets(scene, report);
}

/// The last stage and those on which it stands: what ends up in the image.
std::set<int> shipped_stages(const Dockerfile& file) {
  std::set<int> shipped;
  int stage = static_cast<int>(file.stages.size()) - 1;
  while (stage >= 0) {
    shipped.insert(stage);
    stage = find_stage(file, file.stages[static_cast<std::size_t>(stage)].base.text, stage);
  }
  return shipped;
}

std::vector<Finding> lint_dockerfile(std::string_view text, const stack::Matrix& matrix) {
  std::vector<Finding> findings;
  const Dockerfile file = parse_dockerfile(text, "Dockerfile");
  take_faults(file.faults, findings);
  const std::set<int> shipped = shipped_stages(file);
  const std::vector<StageFacts> stages = stage_facts(file);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    Scene scene = make_scene(stages[i], matrix);
    scene.is_shipped = shipped.contains(static_cast<int>(i));
    check(scene, [&](Finding finding) { findings.push_back(std::move(finding)); });
  }
  return findings;
}

std::vector<Finding> lint_requirements(std::string_view text, const stack::Matrix& matrix) {
  std::vector<Finding> findings;
  const RequirementsFile file = parse_requirements(text, "requirements");
  take_faults(file.faults, findings);
  StageFacts stage;
  stage.installs.push_back(install_of(file));
  Scene scene = make_scene(stage, matrix);
  scene.is_dockerfile = false;
  check(scene, [&](Finding finding) { findings.push_back(std::move(finding)); });
  return findings;
}

}  // namespace

std::string_view name(Severity severity) noexcept {
  switch (severity) {
    case Severity::ok: return "ok";
    case Severity::warning: return "warning";
    case Severity::error: return "error";
  }
  return "error";
}

FileKind file_kind(std::string_view name, std::string_view text) {
  const std::string_view file = name.substr(name.rfind('/') + 1);
  if (file.find("ockerfile") != std::string_view::npos ||
      file.find("ontainerfile") != std::string_view::npos) {
    return FileKind::dockerfile;
  }
  if (file.find("requirement") != std::string_view::npos ||
      file.find("constraint") != std::string_view::npos || file.ends_with(".in") ||
      file.ends_with(".txt")) {
    return FileKind::requirements;
  }
  for (const std::string& line : core::split(text, '\n')) {
    const std::string_view inner = core::trimmed(line);
    if (inner.empty() || inner.starts_with('#')) continue;
    const bool begins =
        inner.starts_with("FROM ") || inner.starts_with("ARG ") || inner.starts_with("from ");
    return begins ? FileKind::dockerfile : FileKind::requirements;
  }
  return FileKind::dockerfile;
}

std::vector<Finding> lint(std::string_view text, FileKind kind, const stack::Matrix& matrix) try {
  return in_order(kind == FileKind::dockerfile ? lint_dockerfile(text, matrix)
                                               : lint_requirements(text, matrix));
} catch (const Error& error) {
  return {{.id = "not-text", .reason = error.message(), .fix = error.hint()}};
}

bool has_faults(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.severity != Severity::ok; });
}

}  // namespace yoke::image
