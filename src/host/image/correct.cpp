#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rules.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::image {
namespace {

using core::text;
using stack::Build;
using stack::Patch;
using stack::Release;
using stack::Version;

/// The set that a correction moves to.
struct Target {
  const Release* release = nullptr;
  const Patch* patch = nullptr;
  const Build* build = nullptr;
};

const Patch* last_patch(const Release& release) {
  return release.patches && !release.patches->empty() ? &release.patches->back() : nullptr;
}

int cuda_number(const std::string& wheel) {
  return wheel.starts_with("cu") ? std::atoi(wheel.c_str() + 2) : 0;
}

/// The stable build whose CUDA is nearest to the one that was asked for.
const Build* nearest_build(const Release& release, const std::string& wheel) {
  const Build* best = nullptr;
  for (const Build& build : release.builds) {
    if (build.is_cpu() || build.tier != "stable") continue;
    const auto distance = [&](const Build& one) {
      return std::abs(cuda_number(one.wheel) - cuda_number(wheel));
    };
    if (best == nullptr || distance(build) < distance(*best)) best = &build;
  }
  return best;
}

Target keep_torch(const Scene& scene) {
  Target target{.release = scene.release};
  if (scene.release == nullptr) return target;
  const auto version = pinned(*scene.torch.requirement);
  target.build = stack::find_build(*scene.release, scene.wheel);
  if (target.build != nullptr && version) target.patch = scene.matrix.patch(*version);
  if (target.build == nullptr && !scene.wheel.empty())
    target.build = nearest_build(*scene.release, scene.wheel);
  if (target.patch == nullptr) target.patch = last_patch(*scene.release);
  return target;
}

Target keep_cuda(const Scene& scene) {
  const auto& releases = scene.matrix.releases;
  for (auto release = releases.rbegin(); release != releases.rend(); ++release) {
    const Build* build = stack::find_build(*release, scene.wheel);
    if (build != nullptr && last_patch(*release) != nullptr) {
      return {&*release, last_patch(*release), build};
    }
  }
  return keep_torch(scene);
}

/// Ubuntu's releases that a base may move to, and their Python.
struct System {
  std::string_view name;
  std::string_view number;
  std::string_view python;
};
constexpr std::array kUbuntus{System{"ubuntu22.04", "22.04", "3.10"},
                              System{"ubuntu24.04", "24.04", "3.12"}};

bool serves(const Release& release, std::string_view python) {
  const auto version = Version::parse(python);
  return !release.python ||
         (version && *version >= release.python->first && *version <= release.python->last);
}

bool has(const std::set<std::string>& ids, std::string_view id) {
  return ids.contains(std::string(id));
}

/// Writes one stage's edits.
class Corrector {
 public:
  Corrector(const Scene& scene, Keep keep, const std::vector<Finding>& findings) : scene_(scene) {
    for (const Finding& finding : findings) {
      if (finding.severity != Severity::ok) ids_.insert(finding.id);
    }
    if (scene.torch)
      target_ = is_torn() && keep == Keep::cuda ? keep_cuda(scene) : keep_torch(scene);
  }

  std::vector<Edit> edits() {
    if (scene_.torch && target_.patch != nullptr) {
      pins();
      index();
    }
    if (scene_.is_dockerfile) base();
    return std::move(edits_);
  }

 private:
  /// Whether torch's version and CUDA contradict each other, so that one has to go.
  [[nodiscard]] bool is_torn() const { return has(ids_, "torch-build"); }

  void pins() {
    const bool moves = is_torn() || has(ids_, "torch-version");
    if (moves) pin(scene_.torch, target_.patch->torch.text());
    companion(scene_.torchvision, "torchvision", target_.patch->torchvision, moves);
    companion(scene_.torchaudio, "torchaudio", target_.patch->torchaudio, moves);
  }

  void companion(const Asked& asked, const std::string& name, const stack::Fact& version,
                 bool moves) {
    if (!asked || !version || version == stack::kNone) return;
    const bool wrong =
        has(ids_, name + "-pair") || has(ids_, name + "-build") || has(ids_, "mixed-cuda");
    if (moves || wrong) pin(asked, *version);
  }

  void pin(const Asked& asked, const std::string& version) {
    const auto torch = pinned(*scene_.torch.requirement);
    const bool has_local = torch && !torch->local().empty() && target_.build != nullptr;
    const std::string local = has_local ? "+" + target_.build->wheel : "";
    edits_.push_back(
        {asked.requirement->where,
         text(asked.requirement->name, asked.requirement->extras, "==", version, local)});
  }

  /// An index of the target's CUDA: added where there is none, put right where it is another's.
  void index() {
    if (target_.build == nullptr || !(has(ids_, "index") || is_torn())) return;
    const std::string address = "https://download.pytorch.org/whl/" + target_.build->wheel;
    const PipInstall& install = *scene_.torch.install;
    bool put_right = false;
    for (const RequirementOption& option : install.options) {
      const std::string wheel = wheel_of_index(option.value);
      if (wheel.empty() || option.where.begin == install.where.begin) continue;
      put_right = true;
      edits_.push_back(
          {option.where, option.value.substr(0, option.value.rfind(wheel)) + target_.build->wheel});
    }
    const auto torch = pinned(*scene_.torch.requirement);
    if (put_right || !torch || torch->local().empty()) return;
    if (scene_.is_dockerfile) {
      const std::size_t at = install.program.end;
      edits_.push_back({{at, at, install.program.line}, " --extra-index-url " + address});
    } else {
      edits_.push_back({{0, 0, 1}, "--extra-index-url " + address + "\n"});
    }
  }

  void base() {
    const BaseFacts& base = scene_.stage.base;
    const bool wrong_python = has(ids_, "python") && target_.release != nullptr;
    const bool wrong_system = wrong_python || has(ids_, "pip") || has(ids_, "glibc");
    if (base.repository == "nvidia/cuda") {
      if (wrong_system || has(ids_, "image-tag") || has(ids_, "double-cuda") ||
          has(ids_, "compiler-cuda")) {
        cuda_base(wrong_system);
      }
    } else if (wrong_system && base.repository == "ubuntu") {
      write_base("ubuntu:" + std::string(system(wrong_system).number));
    } else if (wrong_system && base.system == "alpine" && base.repository == "python") {
      write_base("python:" + base.python + "-slim");
    } else if (wrong_system) {
      write_base("python:" + last_python() + "-slim");
    }
  }

  [[nodiscard]] System system(bool wrong) const {
    const BaseFacts& base = scene_.stage.base;
    for (const System& one : kUbuntus) {
      const bool fits = target_.release == nullptr || serves(*target_.release, one.python);
      if (fits && (wrong || one.name == base.system)) return one;
    }
    return {base.system, base.system.starts_with("ubuntu") ? base.system.substr(6) : "",
            base.python};
  }

  void cuda_base(bool wrong_system) {
    const BaseFacts& base = scene_.stage.base;
    const std::string wheel = target_.build != nullptr ? target_.build->wheel : scene_.wheel;
    const std::string cuda =
        target_.build != nullptr && target_.build->cuda ? *target_.build->cuda : base.cuda;
    const bool drops = has(ids_, "double-cuda");
    const bool moves = is_torn() || drops || has(ids_, "compiler-cuda");
    const std::string number = full_cuda(scene_.matrix, moves && !wheel.empty() ? cuda : base.cuda);
    const std::string flavour = drops ? "base" : middle(base);
    std::string system_name(system(wrong_system).name);
    write_base(text(base.repository, ":", number, "-", flavour, system_name.empty() ? "" : "-",
                    system_name));
  }

  /// What stands between version and system: "cudnn-devel".
  [[nodiscard]] static std::string middle(const BaseFacts& base) {
    std::vector<std::string> parts = core::split(base.tag, '-');
    if (!parts.empty()) parts.erase(parts.begin());
    if (!parts.empty() && !base.system.empty()) parts.pop_back();
    return parts.empty() ? "base" : core::joined(parts, "-");
  }

  [[nodiscard]] std::string last_python() const {
    if (target_.release == nullptr || !target_.release->python) return "3.12";
    return std::min(target_.release->python->last, *Version::parse("3.12")).text();
  }

  void write_base(const std::string& base) {
    edits_.push_back({scene_.stage.base_word.where, base});
  }

  const Scene& scene_;
  std::set<std::string> ids_;
  Target target_;
  std::vector<Edit> edits_;
};

/// The edits of findings that a corrector does not decide about.
void take_edits(const std::vector<Finding>& findings, std::vector<Edit>& edits) {
  for (const Finding& finding : findings) {
    if (finding.id == "image-tag") continue;
    edits.insert(edits.end(), finding.edits.begin(), finding.edits.end());
  }
}

std::string once(std::string_view text, FileKind kind, Keep keep, const stack::Matrix& matrix) {
  const std::vector<Finding> findings = lint(text, kind, matrix);
  std::vector<Edit> edits;
  if (kind == FileKind::requirements) {
    StageFacts stage;
    stage.installs.push_back(install_of(parse_requirements(text, "requirements")));
    Scene scene = make_scene(stage, matrix);
    scene.is_dockerfile = false;
    edits = Corrector(scene, keep, findings).edits();
  } else {
    const Dockerfile file = parse_dockerfile(text, "Dockerfile");
    for (const StageFacts& stage : stage_facts(file)) {
      const Scene scene = make_scene(stage, matrix);
      for (Edit& edit : Corrector(scene, keep, findings).edits()) edits.push_back(std::move(edit));
    }
  }
  take_edits(findings, edits);
  return apply(text, std::move(edits));
}

}  // namespace

std::string corrected(std::string_view text, FileKind kind, Keep keep,
                      const stack::Matrix& matrix) {
  std::string now(text);
  constexpr int kRounds = 4;  // a base that moves may bring a fault of its own
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<Finding> findings = lint(now, kind, matrix);
    if (!has_faults(findings) || findings.front().id == "not-text") break;
    std::string next = once(now, kind, keep, matrix);
    if (next == now) break;
    now = std::move(next);
  }
  return now;
}

}  // namespace yoke::image
