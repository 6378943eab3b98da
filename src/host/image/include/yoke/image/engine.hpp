#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "yoke/core/environment.hpp"

namespace yoke::image {

/// Programs that build images.
enum class EngineKind { buildah, podman, docker };
[[nodiscard]] std::string_view name(EngineKind kind) noexcept;

/// A file that a build may read and no layer keeps.
struct BuildSecret {
  std::string id{};
  std::filesystem::path file{};
};

/// v2.9 is localhost/yoke:v2.9; any other name is what it is.
[[nodiscard]] std::string full_name(const std::string& name);

struct BuildStep {
  std::filesystem::path context{};  ///< holds the Containerfile
  std::string target{};             ///< stage; empty: the last
  std::string tag{};
  std::vector<BuildSecret> secrets{};
  bool fresh = false;           ///< no layer of an earlier build is taken
  std::filesystem::path log{};  ///< what the engine says goes there
};

/// Where a built image goes: docker or podman's own store, a layout, an archive, a file for enroot
/// or Apptainer.
struct ImageOutput {
  std::string kind{};  ///< oci, oci-archive, docker-archive, docker, podman, sqsh, sif
  std::filesystem::path path{};
};

/// Reads --output: docker, podman, oci:DIR, oci-archive:FILE, docker-archive:FILE, sqsh:FILE,
/// sif:FILE. Errors: invalid_argument.
[[nodiscard]] ImageOutput parse_output(const std::string& text);

/// A program that builds images, by its command line.
///
///   const Engine engine = Engine::find({}, variables);
///   engine.build({.context = folder, .tag = "localhost/yoke:v2.9"});
///   engine.write("localhost/yoke:v2.9", parse_output("oci:image"));
///
/// A tag names the whole image or is not there; a file or folder appears whole or not at all.
/// Threads: any. Errors: not_found without the program; io with the end of what it said.
class Engine {
 public:
  static constexpr std::chrono::hours kLimit{3};

  Engine(EngineKind kind, core::EnvironmentMap variables);

  /// `wanted`: its name; empty: the first that is here, buildah before podman before docker.
  [[nodiscard]] static Engine find(const std::string& wanted,
                                   const core::EnvironmentMap& variables);

  [[nodiscard]] EngineKind kind() const noexcept { return kind_; }

  /// The command of a step; a pure function.
  [[nodiscard]] std::vector<std::string> build_command(const BuildStep& step) const;
  void build(const BuildStep& step) const;

  /// Makes an image of one layer from a root file system's tar.
  void import(const std::filesystem::path& tar, const std::string& tag) const;

  [[nodiscard]] bool has(const std::string& tag) const;

  /// A file of an image. Errors: not_found.
  [[nodiscard]] std::string read_file(const std::string& tag, const std::string& path) const;

  /// The image's configuration as OCI writes it.
  [[nodiscard]] std::string config(const std::string& tag) const;

  /// Copies the image out. Replaces an older layout or archive of that name.
  void write(const std::string& tag, const ImageOutput& output) const;

  /// The image as an OCI layout in a new folder, uncompressed where the engine can: to be read
  /// here.
  void unfold(const std::string& tag, const std::filesystem::path& folder) const;

  /// To a registry, by skopeo where it is here.
  void push(const std::string& tag, const std::string& reference) const;

  void remove(const std::string& tag) const;

 private:
  std::string run(const std::vector<std::string>& command, const std::string& doing) const;
  void copy_to(const std::string& tag, const std::string& target) const;
  void write_file_system(const std::string& tag, const ImageOutput& output) const;

  EngineKind kind_;
  core::EnvironmentMap variables_;
};

/// An image's root folder, mounted by buildah: read it, do not write into it. The container that
/// holds the mount is taken away at the end unless it is kept for the next time.
class MountedImage {
 public:
  /// Errors: as Engine's; unsupported for engines other than buildah.
  MountedImage(const Engine& engine, const std::string& tag, const core::EnvironmentMap& variables);
  ~MountedImage();
  MountedImage(const MountedImage&) = delete;
  MountedImage& operator=(const MountedImage&) = delete;

  [[nodiscard]] const std::filesystem::path& root() const noexcept { return root_; }

 private:
  std::string container_;
  std::filesystem::path root_;
  core::EnvironmentMap variables_;
};

}  // namespace yoke::image
