#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rules.hpp"
#include "yoke/core/text.hpp"

namespace yoke::image {
namespace {

using core::text;
using stack::Build;
using stack::Patch;
using stack::Release;
using stack::Version;

bool is_wheel_name(std::string_view local) { return local == "cpu" || local.starts_with("cu"); }

std::string wheels_of(const Release& release) {
  std::vector<std::string> names;
  for (const Build& build : release.builds) names.push_back(build.wheel);
  return core::joined(names);
}

std::string last_torch_with(const stack::Matrix& matrix, const std::string& wheel) {
  for (auto release = matrix.releases.rbegin(); release != matrix.releases.rend(); ++release) {
    if (stack::find_build(*release, wheel) == nullptr) continue;
    const bool has_patches = release->patches && !release->patches->empty();
    return has_patches ? release->patches->back().torch.text() : release->torch.text();
  }
  return {};
}

/// "+cu118", from the index or the version, has to be among the release's builds.
void check_torch_build(const Scene& scene, const Report& report) {
  if (scene.release == nullptr || scene.release->builds.empty()) return;
  if (!is_wheel_name(scene.wheel)) return;
  if (stack::find_build(*scene.release, scene.wheel) != nullptr) return;
  const auto version = pinned(*scene.torch.requirement);
  const bool is_local = version && !version->local().empty();
  const bool is_extra = !is_local && !scene.torch.install->options.empty() &&
                        scene.torch.install->options.front().name == "extra-index-url";
  const std::string last = last_torch_with(scene.matrix, scene.wheel);
  report({.id = "torch-build",
          .line = scene.torch.requirement->where.line,
          .severity = is_extra ? Severity::warning : Severity::error,
          .reason = text("torch ", scene.release->torch.text(), " was never built for ",
                         scene.wheel, ": there are ", wheels_of(*scene.release)),
          .fix = last.empty() ? text("take one of those")
                              : text("take one of those, or the last torch with ", scene.wheel,
                                     ": ", last)});
}

/// A pinned version that nobody released, in a series that the matrix knows whole.
void check_torch_exists(const Scene& scene, const Report& report) {
  const auto version = pinned(*scene.torch.requirement);
  if (!version || version->is_prerelease() || version->is_post()) return;
  if (!scene.torch_patches.empty() || scene.release == nullptr || !scene.release->patches ||
      scene.release->patches->empty()) {
    return;
  }
  const Version& last = scene.release->patches->back().torch;
  report({.id = "torch-version",
          .line = scene.torch.requirement->where.line,
          .reason = text("there is no torch ", version->without_local().text(),
                         "; the last of its series is ", last.text()),
          .fix = text("write torch==", last.text())});
}

const stack::Fact& companion(const Patch& patch, bool is_vision) {
  return is_vision ? patch.torchvision : patch.torchaudio;
}

/// The last torchaudio is 2.11; it is used with later torch, too.
bool serves_later(const Requirement& audio, const Patch& patch) {
  if (patch.torchaudio != stack::kNone) return false;
  const auto version = pinned(audio);
  return !version || *version >= *Version::parse("2.11");
}

/// Whether some torch that is allowed goes with the companion; true where nothing is known.
bool has_pair(const Scene& scene, const Requirement& other, bool is_vision) {
  return std::any_of(scene.torch_patches.begin(), scene.torch_patches.end(),
                     [&](const Patch* patch) {
                       const stack::Fact& fact = companion(*patch, is_vision);
                       if (!fact) return true;
                       if (fact == stack::kNone) return !is_vision && serves_later(other, *patch);
                       const auto version = Version::parse(*fact);
                       return !version || takes(other, *version);
                     });
}

/// The torch to which a companion's pin belongs: "1.13.0"; empty where it is not known.
std::string torch_of(const stack::Matrix& matrix, const Requirement& other, bool is_vision) {
  for (const Release& release : matrix.releases) {
    if (!release.patches) continue;
    for (const Patch& patch : *release.patches) {
      const stack::Fact& fact = companion(patch, is_vision);
      const auto version = fact && fact != stack::kNone ? Version::parse(*fact) : std::nullopt;
      if (version && takes(other, *version)) return patch.torch.text();
    }
  }
  return {};
}

void check_pair(const Scene& scene, const Asked& other, bool is_vision, const Report& report) {
  if (!other || scene.torch_patches.empty() || other.requirement->conditions.empty()) return;
  if (other.requirement->conditions.find('$') != std::string::npos) return;
  if (has_pair(scene, *other.requirement, is_vision)) return;
  const Patch& patch = *scene.torch_patches.back();
  const stack::Fact& right = companion(patch, is_vision);
  const std::string& name = other.requirement->name;
  const std::string belongs = torch_of(scene.matrix, *other.requirement, is_vision);
  report(
      {.id = name + "-pair",
       .line = other.requirement->where.line,
       .reason = text(name, " ", other.requirement->conditions,
                      belongs.empty() ? " was not released" : " belongs to torch " + belongs,
                      belongs.empty() ? " with" : ", not to", " torch ", patch.torch.text()),
       .fix = text("torch ", patch.torch.text(), " goes with ", name, " ", stack::shown(right))});
}

/// torchvision==0.14.0+cu118: its release has to have been built for that CUDA.
void check_vision_build(const Scene& scene, const Report& report) {
  if (!scene.torchvision) return;
  const auto version = pinned(*scene.torchvision.requirement);
  if (!version || !is_wheel_name(version->local())) return;
  const Release* release = scene.matrix.release_of_torchvision(*version);
  if (release == nullptr || stack::find_build(*release, version->local()) != nullptr) return;
  // With the right pair the fault is torch's own, and stands there.
  if (release == scene.release) return;
  report({.id = "torchvision-build",
          .line = scene.torchvision.requirement->where.line,
          .reason = text("torchvision ", version->without_local().text(), " was never built for ",
                         version->local(), ": there are ", wheels_of(*release)),
          .fix = text("take the torchvision of your torch, built for the same CUDA")});
}

/// +cu126 beside +cu128: two CUDAs, and symbols that do not meet.
void check_same_wheel(const Scene& scene, const Asked& other, const Report& report) {
  if (!other || !scene.torch) return;
  const auto mine = pinned(*scene.torch.requirement);
  const auto its = pinned(*other.requirement);
  if (!mine || !its || mine->local().empty() || its->local().empty() ||
      mine->local() == its->local() || !is_wheel_name(its->local())) {
    return;
  }
  report({.id = "mixed-cuda",
          .line = other.requirement->where.line,
          .reason = text(other.requirement->name, " is for ", its->local(), " and torch for ",
                         mine->local()),
          .fix = text("write +", mine->local(), " for both")});
}

void check_pinned_too(const Scene& scene, const Asked& other, bool is_vision,
                      const Report& report) {
  if (!other || !other.requirement->conditions.empty() || !other.requirement->url.empty()) return;
  if (!pinned(*scene.torch.requirement) || scene.torch_patches.empty()) return;
  const Patch& patch = *scene.torch_patches.back();
  const stack::Fact& right = companion(patch, is_vision);
  if (!right || right == stack::kNone) return;
  const std::string local = pinned(*scene.torch.requirement)->local();
  const std::string pin =
      text(other.requirement->name, "==", *right, local.empty() ? "" : "+" + local);
  report({.id = "unpinned-" + other.requirement->name,
          .line = other.requirement->where.line,
          .severity = Severity::warning,
          .reason = text(other.requirement->name, " is not pinned beside torch ",
                         patch.torch.text(), ": a later one is for a later torch"),
          .fix = text("write ", pin),
          .edits = {{other.requirement->where, pin}}});
}

void check_numpy(const Scene& scene, const Report& report) {
  if (scene.release == nullptr || scene.release->torch >= scene.matrix.numpy_two) return;
  for (const PipInstall& install : scene.stage.installs) {
    const Requirement* numpy = install.find("numpy");
    if (numpy == nullptr || !takes(*numpy, *Version::parse("2.0.0"))) continue;
    if (!numpy->conditions.empty() && !takes(*numpy, *Version::parse("2.2.0"))) continue;
    report({.id = "numpy-abi",
            .line = numpy->where.line,
            .reason = text("torch ", scene.release->torch.text(),
                           " was built against NumPy 1, and this takes NumPy 2"),
            .fix = "write numpy<2",
            .edits = {{numpy->where, scene.is_dockerfile ? "\"numpy<2\"" : "numpy<2"}}});
  }
}

const Build* build_of(const Scene& scene) {
  return scene.release == nullptr ? nullptr : stack::find_build(*scene.release, scene.wheel);
}

void check_wheel_pin(const Requirement* pin, const stack::Fact& right, const Report& report,
                     const std::string& torch) {
  if (pin == nullptr || !right || right == stack::kNone) return;
  const auto version = Version::parse(*right);
  if (!version || pin->conditions.empty() || takes(*pin, *version)) return;
  report({.id = "wheel-pin",
          .line = pin->where.line,
          .reason = text("torch ", torch, " asks for ", pin->name, "==", *right, ", this for ",
                         pin->conditions),
          .fix = text("leave ", pin->name, " to torch"),
          .edits = {{pin->where, pin->name + "==" + *right}}});
}

/// The parts that torch's wheel pins itself.
void check_parts(const Scene& scene, const Report& report) {
  const Build* build = build_of(scene);
  if (build == nullptr || !pinned(*scene.torch.requirement)) return;
  const std::string major = build->cuda_series().substr(0, 2);
  const std::string torch = scene.release->torch.text() + "+" + build->wheel;
  for (const PipInstall& install : scene.stage.installs) {
    check_wheel_pin(install.find("nvidia-cudnn-cu" + major), build->cudnn, report, torch);
    check_wheel_pin(install.find("nvidia-nccl-cu" + major), build->nccl, report, torch);
    if (scene.torch_patches.size() == 1) {
      check_wheel_pin(install.find("triton"), scene.torch_patches.front()->triton, report, torch);
    }
    for (const Requirement& requirement : install.requirements) {
      const std::string& name = requirement.name;
      const std::size_t at = name.rfind("-cu");
      if (!name.starts_with("nvidia-") || at == std::string::npos || major.empty()) continue;
      const std::string its = name.substr(at + 3);
      if (its.size() != 2 || its == major) continue;
      report({.id = "mixed-cuda",
              .line = requirement.where.line,
              .severity = Severity::warning,
              .reason = text(name, " is of CUDA ", its, ", torch ", torch, " of CUDA ", major),
              .fix = text("leave it out: torch brings its own")});
    }
  }
}

/// The same package pinned to two versions in one command or file.
void check_conflicts(const Scene& scene, const Report& report) {
  for (std::size_t i = scene.stage.first_own_install; i < scene.stage.installs.size(); ++i) {
    const std::vector<Requirement>& all = scene.stage.installs[i].requirements;
    for (auto one = all.begin(); one != all.end(); ++one) {
      const auto other = std::find_if(all.begin(), one, [&](const Requirement& before) {
        return before.name == one->name && before.marker.empty() && one->marker.empty() &&
               pinned(before) && pinned(*one) && *pinned(before) != *pinned(*one);
      });
      if (other == one) continue;
      report({.id = "conflict",
              .line = one->where.line,
              .reason = text(one->name, " is pinned to ", one->conditions, " and, on line ",
                             other->where.line, ", to ", other->conditions),
              .fix = "keep one of them"});
    }
  }
}

bool is_constrained(const PipInstall& install) {
  return std::any_of(install.options.begin(), install.options.end(),
                     [](const RequirementOption& option) { return option.name == "constraint"; });
}

/// Packages whose every release asks for one exact torch, so that a later one draws another in.
bool asks_for_exact_torch(std::string_view name) {
  return name == "xformers" || name == "vllm" || name == "sglang" || name == "torchtext" ||
         name == "torchdata" || name == "fbgemm-gpu";
}

void check_replaced(const Scene& scene, const Report& report) {
  if (!scene.torch || !pinned(*scene.torch.requirement)) return;
  bool after_torch = false;
  for (const PipInstall& install : scene.stage.installs) {
    if (after_torch && install.find("torch") == nullptr && !is_constrained(install) &&
        !install.without_dependencies) {
      for (const Requirement& requirement : install.requirements) {
        if (!asks_for_exact_torch(requirement.name) || !requirement.conditions.empty()) continue;
        report(
            {.id = "torch-replaced",
             .line = requirement.where.line,
             .severity = Severity::warning,
             .reason = text("each ", requirement.name, " asks for one torch, so this replaces the ",
                            scene.torch.requirement->conditions, " that is there"),
             .fix = text("pin it, or give torch", scene.torch.requirement->conditions,
                         " in the same command")});
      }
    }
    if (&install == scene.torch.install) after_torch = true;
  }
}

/// Two installs of different torches in one image: the first is a layer for nothing.
void check_twice(const Scene& scene, const Report& report) {
  const auto last = pinned(*scene.torch.requirement);
  for (const PipInstall& install : scene.stage.installs) {
    const Requirement* other = install.find("torch");
    if (other == nullptr || &install == scene.torch.install) continue;
    const auto version = pinned(*other);
    if (!version || !last || *version == *last) continue;
    report({.id = "torch-twice",
            .line = scene.torch.requirement->where.line,
            .severity = Severity::warning,
            .reason = text("torch ", last->text(), " replaces the torch ", version->text(),
                           " of line ", other->where.line, ", which stays in its layer"),
            .fix = "install torch once"});
  }
  const BaseFacts& base = scene.stage.base;
  if (base.torch.empty() || !last) return;
  const auto there = Version::parse(base.torch);
  if (!there || *there == last->without_local()) return;
  report({.id = "torch-twice",
          .line = scene.torch.requirement->where.line,
          .severity = Severity::warning,
          .reason = text("the base holds torch ", base.torch, " and this installs ", last->text(),
                         " over it"),
          .fix = text("use the base of torch ", last->without_local().text(),
                      ", or a base without torch")});
}

/// torchvision of another torch than the one in the base makes pip replace that one.
void check_base_pair(const Scene& scene, const Report& report) {
  if (scene.torch || !scene.torchvision || scene.stage.base.torch.empty()) return;
  const auto version = pinned(*scene.torchvision.requirement);
  const auto there = Version::parse(scene.stage.base.torch);
  const stack::Patch* patch = there ? scene.matrix.patch(*there) : nullptr;
  if (!version || patch == nullptr || !patch->torchvision) return;
  const auto right = Version::parse(*patch->torchvision);
  if (!right || *right == version->without_local()) return;
  report({.id = "torchvision-pair",
          .line = scene.torchvision.requirement->where.line,
          .reason = text("torchvision ", version->text(), " does not belong to the torch ",
                         scene.stage.base.torch, " of the base, so pip replaces that"),
          .fix = text("torch ", scene.stage.base.torch, " goes with torchvision ", right->text())});
}

}  // namespace

void check_versions(const Scene& scene, const Report& report) {
  check_conflicts(scene, report);
  check_vision_build(scene, report);
  check_base_pair(scene, report);
  if (!scene.torch) return;
  check_torch_exists(scene, report);
  check_torch_build(scene, report);
  for (const bool is_vision : {true, false}) {
    const Asked& other = is_vision ? scene.torchvision : scene.torchaudio;
    check_pair(scene, other, is_vision, report);
    check_same_wheel(scene, other, report);
    check_pinned_too(scene, other, is_vision, report);
  }
  check_numpy(scene, report);
  check_parts(scene, report);
  check_replaced(scene, report);
  check_twice(scene, report);
}

}  // namespace yoke::image
