#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "yoke/image/build_plan.hpp"
#include "yoke/image/wheel_lock.hpp"

namespace yoke::image {

/// A file of a build's context.
struct ContextFile {
  std::string path{};  ///< below the context's folder
  std::string text{};
  bool is_program = false;
};

/// What goes into an image beside wheels and packages: Yoke itself.
struct YokeSource {
  enum class Kind {
    none,
    program,  ///< the front program alone
    prefix,   ///< an installed Yoke: bin, lib, include, libexec, share
    source,   ///< a checkout, which is compiled in the image against its torch
  };
  Kind kind = Kind::none;
  std::filesystem::path path{};
};

/// The stage that has the distribution's packages, an empty environment and the installer: locks
/// are made in it, with the image's own interpreter.
inline constexpr const char* kSystemStage = "system";

/// The context that builds the image anywhere: Containerfile, locks by layer, entry, constraints,
/// SBOM. Equal inputs give equal bytes.
/// The folder yoke/ of the context is copy_yoke()'s.
[[nodiscard]] std::vector<ContextFile> render(const BuildPlan& plan, const WheelLock& lock,
                                              const YokeSource& yoke,
                                              const ImageParts& parts = ImageParts::built_in());

/// The context of the system stage, and of the stage `lock` on it that leaves pip's report in
/// /report.json.
[[nodiscard]] std::vector<ContextFile> render_lock_stage(const BuildPlan& plan);

/// The SBOM (SPDX 2.3, JSON) of a lock.
[[nodiscard]] std::string write_sbom(const BuildPlan& plan, const WheelLock& lock);

/// Writes files and, for a build, Yoke below `folder`, with the same modes whatever the umask.
/// Errors: io.
void write_context(const std::filesystem::path& folder, const std::vector<ContextFile>& files);
void copy_yoke(const YokeSource& yoke, const std::filesystem::path& folder);

/// Errors: invalid_argument where the lock is of another torch or Python than the plan.
void check_lock(const BuildPlan& plan, const WheelLock& lock);

}  // namespace yoke::image
