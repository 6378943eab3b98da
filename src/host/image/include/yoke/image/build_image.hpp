#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "yoke/image/build_plan.hpp"
#include "yoke/image/engine.hpp"
#include "yoke/image/render.hpp"

namespace yoke::image {

/// What pip needs of the machine that builds, as files that no layer keeps: its settings (where an
/// index of the site may stand) and the certificate of the site's proxy.
[[nodiscard]] std::vector<BuildSecret> pip_secrets(const core::EnvironmentMap& variables);

/// The system in a root file system's tar, as its os-release says: debian12, ubuntu24.04; empty: it
/// does not say. Errors: as read_layer.
[[nodiscard]] std::string system_in_tar(const std::filesystem::path& tar);

/// A lock that is part of this program for that set, Python and those parts; nothing: there is
/// none.
[[nodiscard]] std::optional<WheelLock> known_lock(const BuildPlan& plan);

/// The name under which known_lock() looks: image-2.9.1-cu128-py3.11.
[[nodiscard]] std::string lock_name(const BuildPlan& plan);

struct BuildOptions {
  YokeSource yoke{};
  bool fresh = false;            ///< --no-cache
  std::filesystem::path work{};  ///< empty: below Yoke's cache
};

/// Builds the image of a plan and gives it the plan's tag.
///
///   Builder builder(Engine::find({}, variables), variables, {});
///   const WheelLock lock = known_lock(plan) ? *known_lock(plan) : builder.make_lock(plan);
///   builder.build(plan, lock);
///
/// A base that is a tar or apt:SUITE becomes an image of its own first.
/// Errors: as Engine's; the tag names what it named before.
/// Cost: minutes; the wheels are downloaded.
class ImageBuilder {
 public:
  ImageBuilder(Engine engine, core::EnvironmentMap variables, BuildOptions options);

  /// Asks pip, inside the image's own system stage, which wheels it would install.
  [[nodiscard]] WheelLock make_lock(BuildPlan plan) const;

  void build(BuildPlan plan, const WheelLock& lock) const;

  [[nodiscard]] const Engine& engine() const noexcept { return engine_; }

 private:
  void prepare_base(BuildPlan& plan) const;
  [[nodiscard]] std::filesystem::path folder(const std::string& name) const;

  Engine engine_;
  core::EnvironmentMap variables_;
  BuildOptions options_;
};

}  // namespace yoke::image
