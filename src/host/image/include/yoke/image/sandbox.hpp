#pragma once

#include <optional>
#include <string>
#include <vector>

#include "yoke/image/injection.hpp"
#include "yoke/image/run_request.hpp"

namespace yoke::image {

/// What an image says about its programs.
struct ImageSettings {
  core::EnvironmentMap variables{};
  std::vector<std::string> entrypoint{};
  std::vector<std::string> command{};
  std::string folder{};
  std::string user{};
};

/// Where the sandbox puts the driver: on a file system of its own, so that no empty files stay in
/// the image.
inline constexpr const char* kDriverLibraries = "/run/yoke/driver/lib";
inline constexpr const char* kDriverPrograms = "/run/yoke/driver/bin";

struct Sandbox {
  std::vector<std::string> command{};  ///< bwrap and its arguments, all but --ro-bind-data's
  std::vector<InjectedText> texts{};   ///< files that come through descriptors
  core::EnvironmentMap variables{};    ///< of the program
  std::vector<std::string> program{};  ///< what runs inside
};

struct SandboxHost {
  std::string root{};  ///< what becomes "/"
  std::string here{};  ///< the caller's folder, at /workspace
  core::EnvironmentMap caller{};
  bool has_root = true;  ///< the caller is uid 0
};

/// bubblewrap's command for a request: a pure function, so that --plan shows what would happen.
/// Errors: unsupported for what the sandbox cannot do (-p with another number).
[[nodiscard]] Sandbox make_sandbox(const RunRequest& request, const ImageSettings& settings,
                                   const InjectionPlan& plan, const SandboxHost& host);

/// Whether the program can be started in the image, before anything is mounted: docker's 127 where
/// it is not there, 126 where it may not be run, else 0.
struct Startable {
  int exit_code = 0;
  std::string reason{};
};
[[nodiscard]] Startable check_program(const Tree& image, const std::string& program,
                                      const core::EnvironmentMap& variables,
                                      const std::string& folder);

/// Runs the sandbox and returns the program's exit code, 128+n after signal n. Signals that come
/// meanwhile are passed to the program, which has its time to save.
/// What the program writes outside of volumes lies in memory over the root folder and is gone at
/// its end; with `writable` it goes into the folder.
/// Errors, thrown in a child process too, which then has to end: not_found without bubblewrap;
///   unsupported where the system forbids mounts, with the system's reason.
[[nodiscard]] int run_sandbox(const Sandbox& sandbox, const RunRequest& request,
                              const std::string& root);

}  // namespace yoke::image
