#include <algorithm>
#include <cctype>

#include "rules.hpp"
#include "yoke/core/text.hpp"

namespace yoke::image {
namespace {

using stack::Specifiers;
using stack::Version;

/// The conditions without local parts, which say nothing about pairs: ==2.9.0+cu118 is ==2.9.0.
std::string without_locals(const std::string& conditions) {
  std::string out;
  bool in_local = false;
  for (const char byte : conditions) {
    if (byte == '+') in_local = true;
    if (byte == ',') in_local = false;
    if (!in_local) out += byte;
  }
  return out;
}

Asked last_asked(const StageFacts& stage, std::string_view name) {
  for (auto install = stage.installs.rbegin(); install != stage.installs.rend(); ++install) {
    if (const Requirement* found = install->find(name)) return {found, &*install};
  }
  return {};
}

std::string wheel_of(const Scene& scene) {
  if (const auto version = pinned(*scene.torch.requirement); version && !version->local().empty()) {
    return version->local();
  }
  for (const std::string& url : scene.torch.install->indexes()) {
    if (const std::string wheel = wheel_of_index(url); !wheel.empty()) return wheel;
  }
  if (!scene.torch.install->indexes().empty() || scene.stage.has_pip_settings) return {};
  if (scene.release == nullptr) return {};
  const auto build = std::find_if(scene.release->builds.begin(), scene.release->builds.end(),
                                  [](const stack::Build& one) { return one.is_default == true; });
  return build == scene.release->builds.end() ? "" : build->wheel;
}

void take_torch(Scene& scene) {
  for (const stack::Release& release : scene.matrix.releases) {
    if (!release.patches) continue;
    for (const stack::Patch& patch : *release.patches) {
      if (takes(*scene.torch.requirement, patch.torch)) scene.torch_patches.push_back(&patch);
    }
  }
  if (const auto version = pinned(*scene.torch.requirement)) {
    scene.release = scene.matrix.release(*version);
  } else if (!scene.torch_patches.empty()) {
    const auto* first = scene.matrix.release(scene.torch_patches.front()->torch);
    const auto* last = scene.matrix.release(scene.torch_patches.back()->torch);
    scene.release = first == last ? first : nullptr;
  }
  scene.wheel = wheel_of(scene);
}

}  // namespace

Scene make_scene(const StageFacts& stage, const stack::Matrix& matrix) {
  Scene scene{.stage = stage, .matrix = matrix};
  scene.torch = last_asked(stage, "torch");
  scene.torchvision = last_asked(stage, "torchvision");
  scene.torchaudio = last_asked(stage, "torchaudio");
  if (scene.torch) take_torch(scene);
  return scene;
}

std::optional<Version> pinned(const Requirement& requirement) {
  const auto exact = requirement.exact();
  return exact ? Version::parse(*exact) : std::nullopt;
}

bool takes(const Requirement& requirement, const Version& version) {
  if (requirement.conditions.empty()) return true;
  const auto conditions = Specifiers::parse(without_locals(requirement.conditions));
  return !conditions || conditions->allow(version.without_local());
}

std::string wheel_of_index(std::string_view url) {
  while (url.ends_with('/')) url.remove_suffix(1);
  std::string_view last = url.substr(url.rfind('/') + 1);
  if (last == "torch" || last.ends_with(".html")) {
    const std::string_view parent = url.substr(0, url.rfind('/'));
    last = parent.substr(parent.rfind('/') + 1);
  }
  if (last == "cpu") return "cpu";
  const bool is_cuda = last.starts_with("cu") && last.size() >= 5 && last.size() <= 6 &&
                       core::parse_integer(last.substr(2)).has_value();
  return is_cuda ? std::string(last) : "";
}

std::string cuda_of_wheel(std::string_view wheel) {
  if (!wheel.starts_with("cu") || wheel.size() < 4) return {};
  return std::string(wheel.substr(2, wheel.size() - 3)) + "." +
         std::string(wheel.substr(wheel.size() - 1));
}

std::string full_cuda(const stack::Matrix& matrix, const std::string& cuda) {
  if (std::count(cuda.begin(), cuda.end(), '.') >= 2) return cuda;
  std::string full = cuda + ".0";
  for (const stack::Toolkit& toolkit : matrix.toolkits) {
    const std::string& text = toolkit.cuda.text();
    if (text.starts_with(cuda + ".")) full = text;
  }
  return full;
}

}  // namespace yoke::image
