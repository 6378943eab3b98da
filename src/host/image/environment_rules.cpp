#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rules.hpp"
#include "yoke/core/text.hpp"

namespace yoke::image {
namespace {

using core::text;
using stack::Version;

bool is_nvidia_cuda(const BaseFacts& base) {
  return base.repository == "nvidia/cuda" || base.repository == "nvcr.io/nvidia/cuda";
}

/// The FROM word with another tag.
Edit new_tag(const StageFacts& stage, const std::string& tag) {
  const Word& word = stage.base_word;
  return {word.where, word.text.substr(0, word.text.rfind(':')) + ":" + tag};
}

void check_tag(const Scene& scene, const Report& report) {
  const BaseFacts& base = scene.stage.base;
  if (!base.is_known || base.has_digest || !is_nvidia_cuda(base)) return;
  if (base.tag == "latest" || base.cuda.empty()) {
    report({.id = "image-tag",
            .line = scene.stage.base_word.where.line,
            .reason = text(base.repository, " has no tag ", base.tag),
            .fix = "name version, flavour and system, as 12.6.3-base-ubuntu22.04"});
    return;
  }
  if (std::count(base.cuda.begin(), base.cuda.end(), '.') >= 2) return;
  const std::string tag = full_cuda(scene.matrix, base.cuda) + base.tag.substr(base.cuda.size());
  report({.id = "image-tag",
          .line = scene.stage.base_word.where.line,
          .reason = text("tags of ", base.repository, " have three numbers, so ", base.tag,
                         " is an unknown manifest"),
          .fix = text("write ", base.repository, ":", tag),
          .edits = {new_tag(scene.stage, tag)}});
}

void check_moving_tag(const Scene& scene, const Report& report) {
  const BaseFacts& base = scene.stage.base;
  if (base.tag != "latest" || !base.is_known) return;
  if (base.repository != "pytorch/pytorch" && base.repository != "nvcr.io/nvidia/pytorch") return;
  report({.id = "moving-base",
          .line = scene.stage.base_word.where.line,
          .severity = Severity::warning,
          .reason = text(base.repository, ":latest is another torch and CUDA at each build"),
          .fix = "name a version, best by digest"});
}

bool has_cuda_wheel(const Scene& scene) {
  return scene.torch && scene.wheel != "cpu" && scene.torch.requirement->url.empty();
}

std::string major_of(const std::string& cuda) { return cuda.substr(0, cuda.find('.')); }

/// The base brings CUDA, and the wheel brings another.
void check_double_cuda(const Scene& scene, const Report& report) {
  const BaseFacts& base = scene.stage.base;
  if (!scene.is_shipped || !is_nvidia_cuda(base) || base.cuda.empty() || !has_cuda_wheel(scene))
    return;
  const std::string wheels = cuda_of_wheel(scene.wheel);
  const bool other_major = !wheels.empty() && major_of(wheels) != major_of(base.cuda);
  const bool wasted = base.flavour == "devel" && !scene.stage.compiles_cuda;
  if (!wasted && !(base.flavour == "runtime" && other_major)) return;
  const std::string tag = full_cuda(scene.matrix, base.cuda) + "-base-" + base.system;
  report({.id = "double-cuda",
          .line = scene.stage.base_word.where.line,
          .severity = Severity::warning,
          .reason = text("the wheel brings its own CUDA, cuDNN and NCCL, so those of the ",
                         base.flavour, " base lie there for nothing"),
          .fix = text("use ", base.repository, ":", tag, ", or a base without CUDA")});
}

/// Extensions are compiled by the base's nvcc, whose major version torch checks.
void check_compiler(const Scene& scene, const Report& report) {
  const BaseFacts& base = scene.stage.base;
  const std::string wheels = cuda_of_wheel(scene.wheel);
  if (!scene.torch || base.flavour != "devel" || base.cuda.empty() || wheels.empty() ||
      !scene.stage.compiles_cuda || major_of(wheels) == major_of(base.cuda)) {
    return;
  }
  report({.id = "compiler-cuda",
          .line = scene.stage.base_word.where.line,
          .reason = text("the base's nvcc is of CUDA ", base.cuda, " and torch of ", wheels,
                         ": torch refuses to compile extensions with it"),
          .fix = text("use a devel base of CUDA ", full_cuda(scene.matrix, wheels))});
}

/// Whether some allowed torch knows that Python; true where nothing is known.
bool knows_python(const Scene& scene, const Version& python) {
  const auto serves = [&](const stack::Release* release) {
    if (release == nullptr || !release->python) return true;
    const auto& trial = release->python->trial;
    return (python >= release->python->first && python <= release->python->last) ||
           std::find(trial.begin(), trial.end(), python.text()) != trial.end();
  };
  if (scene.release != nullptr) return serves(scene.release);
  return scene.torch_patches.empty() ||
         std::any_of(scene.torch_patches.begin(), scene.torch_patches.end(),
                     [&](const auto* patch) { return serves(scene.matrix.release(patch->torch)); });
}

void check_python(const Scene& scene, const Report& report) {
  const PipInstall& install = *scene.torch.install;
  const std::string& text_of = install.python.empty() ? scene.stage.python : install.python;
  const auto python = Version::parse(text_of);
  if (!python || scene.torch.requirement->conditions.empty() || install.is_uv) return;
  if (scene.torch.requirement->marker.find("python_") != std::string::npos) return;
  if (knows_python(scene, *python)) return;
  const stack::Release& release = scene.release != nullptr
                                      ? *scene.release
                                      : *scene.matrix.release(scene.torch_patches.back()->torch);
  report(
      {.id = "python",
       .line = scene.torch.requirement->where.line,
       .reason = text("Python is ", python->text(), " here, and torch ", release.torch.text(),
                      " needs ", release.python->first.text(), " to ", release.python->last.text()),
       .fix = "take a base with such a Python"});
}

/// The oldest glibc on which the wheel runs; of all builds where it is not known which is meant.
std::optional<Version> glibc_needed(const Scene& scene) {
  if (scene.release == nullptr) return std::nullopt;
  const stack::Build* build = stack::find_build(*scene.release, scene.wheel);
  std::optional<Version> least;
  for (const stack::Build& one : scene.release->builds) {
    if (build != nullptr && &one != build) continue;
    const auto version = one.glibc ? Version::parse(*one.glibc) : std::nullopt;
    if (version && (!least || *version < *least)) least = version;
  }
  return least;
}

void check_glibc(const Scene& scene, const Report& report) {
  const BaseFacts& base = scene.stage.base;
  const int line = scene.stage.base_word.where.line;
  if (base.system == "alpine") {
    report({.id = "glibc",
            .line = line,
            .reason = "Alpine has musl, and torch's wheels need glibc",
            .fix = "use a base of Debian or Ubuntu"});
    return;
  }
  const auto here = Version::parse(base.glibc);
  const auto needed = glibc_needed(scene);
  if (!here || !needed) return;
  if (*here < *needed) {
    report({.id = "glibc",
            .line = line,
            .reason = text("the base has glibc ", here->text(), ", and torch ",
                           scene.release->torch.text(), " needs ", needed->text()),
            .fix = "take a newer base"});
  } else if (*here <= *Version::parse("2.31") && *needed >= *Version::parse("2.28")) {
    report({.id = "glibc",
            .line = line,
            .severity = Severity::ok,
            .reason = text("glibc ", here->text(), " of the base is enough: torch ",
                           scene.release->torch.text(), " needs ", needed->text()),
            .fix = "nothing to do"});
  }
}

bool needs_new_pip(const Scene& scene) {
  const auto needed = glibc_needed(scene);
  return needed && *needed >= *Version::parse("2.28");
}

void check_pip(const Scene& scene, const Report& report) {
  const PipInstall& install = *scene.torch.install;
  const auto pip = Version::parse(scene.stage.base.pip);
  if (!pip || scene.stage.has_own_pip || install.is_uv || !install.python.empty() ||
      *pip >= scene.matrix.manylinux_pip || !needs_new_pip(scene)) {
    return;
  }
  report({.id = "pip",
          .line = install.where.line,
          .reason = text("pip is ", pip->text(), " here, and only ",
                         scene.matrix.manylinux_pip.text(), " and later see wheels for glibc 2.28"),
          .fix = "take a newer base, or run pip install --upgrade pip before"});
}

/// A package of a + version is on PyTorch's index alone.
void check_index(const Scene& scene, const Asked& asked, const Report& report) {
  const auto version = pinned(*asked.requirement);
  if (!version || version->local().empty() || !asked.requirement->url.empty()) return;
  const std::string& local = version->local();
  if (local != "cpu" && !local.starts_with("cu")) return;
  const std::vector<std::string> indexes = asked.install->indexes();
  const std::string address = "https://download.pytorch.org/whl/" + local;
  const int line = asked.requirement->where.line;
  if (indexes.empty() && !scene.stage.has_pip_settings) {
    report({.id = "index",
            .line = line,
            .reason = text("a version with +", local, " is never on PyPI, and no index is given"),
            .fix = text("add --index-url ", address)});
    return;
  }
  for (const std::string& url : indexes) {
    const std::string wheel = wheel_of_index(url);
    if (wheel.empty() || wheel == local) return;
  }
  if (indexes.empty()) return;
  report({.id = "index",
          .line = line,
          .reason = text("the index ", indexes.front(), " has no versions with +", local),
          .fix = text("use --index-url ", address)});
}

void check_first_index(const Scene& scene, const Report& report) {
  for (const Asked* asked : {&scene.torch, &scene.torchvision, &scene.torchaudio}) {
    if (!*asked) continue;
    bool found = false;
    check_index(scene, *asked, [&](Finding finding) {
      found = true;
      report(std::move(finding));
    });
    if (found) return;
  }
}

void check_managed(const Scene& scene, const Report& report) {
  const StageFacts& stage = scene.stage;
  if (!stage.base.managed_externally || stage.base.system == "alpine" || stage.has_venv) return;
  for (std::size_t i = stage.first_own_install; i < stage.installs.size(); ++i) {
    const PipInstall& install = stage.installs[i];
    if (install.is_uv || install.by_path || install.breaks_system || !install.python.empty())
      continue;
    report({.id = "externally-managed",
            .line = install.where.line,
            .reason = text("pip of ", stage.base.system,
                           " refuses to install into the system's Python (PEP 668)"),
            .fix = "make a venv that the image owns, and put it first on PATH",
            .edits = {{{install.program.end, install.program.end, install.program.line},
                       " --break-system-packages"}}});
    return;
  }
}

void check_aarch64(const Scene& scene, const Report& report) {
  const auto version = pinned(*scene.torch.requirement);
  if (scene.stage.platform.find("arm64") == std::string::npos || !version ||
      !version->local().empty() || !scene.torch.install->indexes().empty() ||
      scene.stage.has_pip_settings || *version >= *Version::parse("2.11")) {
    return;
  }
  report({.id = "aarch64-cpu",
          .line = scene.torch.requirement->where.line,
          .severity = Severity::warning,
          .reason = text("on aarch64 PyPI's torch ", version->text(), " is for CPUs alone"),
          .fix = "give the index of a CUDA version, or say +cpu"});
}

/// With a hash on one line pip wants one on every line.
void check_hashes(const Scene& scene, const Report& report) {
  if (scene.is_dockerfile) return;
  for (const PipInstall& install : scene.stage.installs) {
    const auto& all = install.requirements;
    const bool any =
        std::any_of(all.begin(), all.end(), [](const auto& one) { return one.has_hash; });
    const auto without =
        std::find_if(all.begin(), all.end(), [](const auto& one) { return !one.has_hash; });
    if (!any || without == all.end()) continue;
    report(
        {.id = "hashes",
         .line = without->where.line,
         .reason = text(without->name, " has no hash and other lines have: pip refuses the file"),
         .fix = "lock all of it with hashes, or none"});
  }
}

/// conda's channel pytorch ends with 2.5.
void check_conda(const Scene& scene, const Report& report) {
  for (const ShellCommand& command : scene.stage.commands) {
    const std::string& program = command.words.front().text;
    if (program != "conda" && program != "mamba") continue;
    const auto has = [&](std::string_view word) {
      return std::any_of(command.words.begin(), command.words.end(),
                         [&](const Word& one) { return one.text == word; });
    };
    if (!has("install") || !has("-c") || !has("pytorch") || has("conda-forge")) continue;
    for (const Word& word : command.words) {
      if (!word.text.starts_with("pytorch=")) continue;
      const auto version = Version::parse(word.text.substr(word.text.find_last_of('=') + 1));
      if (!version || *version < *Version::parse("2.6")) continue;
      report(
          {.id = "conda",
           .line = word.where.line,
           .reason = text("conda's channel pytorch ends with 2.5.1; there is no ", version->text()),
           .fix = "use pip, or channel conda-forge"});
    }
  }
}

}  // namespace

void check_environment(const Scene& scene, const Report& report) {
  if (scene.is_dockerfile) {
    check_tag(scene, report);
    check_moving_tag(scene, report);
    check_conda(scene, report);
    check_managed(scene, report);
  }
  check_hashes(scene, report);
  check_first_index(scene, report);
  if (!scene.torch) return;
  check_python(scene, report);
  check_aarch64(scene, report);
  if (!scene.is_dockerfile) return;
  check_glibc(scene, report);
  check_pip(scene, report);
  check_double_cuda(scene, report);
  check_compiler(scene, report);
}

}  // namespace yoke::image
