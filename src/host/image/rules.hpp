#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "build_facts.hpp"
#include "yoke/image/lint.hpp"

namespace yoke::image {

// A requirement and the install that asks for it.
struct Asked {
  const Requirement* requirement = nullptr;
  const PipInstall* install = nullptr;

  explicit operator bool() const noexcept { return requirement != nullptr; }
};

// A build stage, or a requirements file, as the rules see it.
struct Scene {
  const StageFacts& stage;
  const stack::Matrix& matrix;
  bool is_dockerfile = true;
  bool is_shipped = true;  // of the last stage or one below it

  Asked torch{};
  Asked torchvision{};
  Asked torchaudio{};

  // Patches of torch that the requirement allows; empty where the matrix knows none.
  std::vector<const stack::Patch*> torch_patches{};
  const stack::Release* release = nullptr;  // of torch, where only one is allowed
  std::string wheel{};  // cu126, cpu: from the version, the index, or the default; empty: not known
};

[[nodiscard]] Scene make_scene(const StageFacts& stage, const stack::Matrix& matrix);

// The version that a requirement pins, without or with its local part.
[[nodiscard]] std::optional<stack::Version> pinned(const Requirement& requirement);

// Whether the requirement takes this version; true where its conditions cannot be read.
[[nodiscard]] bool takes(const Requirement& requirement, const stack::Version& version);

// cu126 or cpu at the end of an index's address; empty: it holds several, or is not known.
[[nodiscard]] std::string wheel_of_index(std::string_view url);

// "12.6" of cu126.
[[nodiscard]] std::string cuda_of_wheel(std::string_view wheel);

// A tag of nvidia/cuda with three numbers for "12.6" or "12.6.1".
[[nodiscard]] std::string full_cuda(const stack::Matrix& matrix, const std::string& cuda);

using Report = std::function<void(Finding)>;

void check_versions(const Scene& scene, const Report& report);     // torch and its companions
void check_environment(const Scene& scene, const Report& report);  // base, Python, pip, index
void check_settings(const Scene& scene, const Report& report);     // variables of driver and GPU
void check_packages(const Scene& scene, const Report& report);     // the distribution's packages
void check_secrets(const Scene& scene, const Report& report);      // what must not be in a layer

}  // namespace yoke::image
