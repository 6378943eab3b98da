#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "image_commands.hpp"
#include "image_run_options.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"
#include "yoke/image/emit.hpp"
#include "yoke/image/engine.hpp"
#include "yoke/image/oci_layout.hpp"
#include "yoke/image/sandbox.hpp"

namespace yoke::cli {
namespace {

namespace fs = std::filesystem;
using core::text;
using image::RunRequest;

constexpr int kOurFault = 125;  // docker's code where the container could not be made

/// Whether a daemon listens on docker's socket; the program alone proves nothing.
bool docker_answers(const core::EnvironmentMap& variables) {
  if (!core::find_program("docker", variables)) return false;
  if (variables.contains("DOCKER_HOST")) return true;
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return false;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, "/var/run/docker.sock", sizeof address.sun_path - 1);
  const bool answers =
      ::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(descriptor);
  return answers;
}

/// A folder runs in the sandbox; a name by whatever is here.
std::string choose_engine(const RunWords& words, const core::EnvironmentMap& variables) {
  if (!words.engine.empty()) return words.engine;
  if (fs::is_directory(words.request.image)) return "sandbox";
  if (docker_answers(variables)) return "docker";
  for (const char* engine : {"podman", "apptainer", "enroot"}) {
    if (core::find_program(engine, variables)) return engine;
  }
  // An image that buildah built lies here without anything that would run it but our sandbox.
  if (core::find_program("buildah", variables)) return "sandbox";
  throw Error(Code::not_found,
              text("yoke image run: '", words.request.image,
                   "' is no folder here, and no docker, podman, apptainer, enroot or buildah is"),
              "name a root folder or an OCI layout");
}

/// An image for the sandbox: a folder, or a name in buildah's store, mounted as long as this lives.
class SandboxImage {
 public:
  SandboxImage(const std::string& named, const core::EnvironmentMap& variables) {
    if (fs::is_directory(named)) {
      opened_ = image::open_image(named);
      return;
    }
    const std::string name = image::full_name(named);
    const image::Engine engine = image::Engine::find("buildah", variables);
    if (!engine.has(name))
      throw Error(Code::not_found, text("yoke image run: buildah has no image ", name),
                  "yoke image build makes one; buildah images lists them");
    mounted_.emplace(engine, name, variables);
    opened_ = {.root = mounted_->root().string(),
               .settings = image::read_image_config(engine.config(name), name)};
  }

  [[nodiscard]] const image::OpenedImage& opened() const { return opened_; }

 private:
  std::optional<image::MountedImage> mounted_;
  image::OpenedImage opened_;
};

image::InjectionPlan plan_of(const RunWords& words, const image::ImageSettings& settings,
                             const image::Tree* root, bool sandboxed) {
  image::RequestSources sources{.option = words.request.gpus,
                                .given = words.request.variables,
                                .image = settings.variables,
                                .allow_image = words.request.allow_image_request};
  image::InjectionOptions options{.privileged = words.request.privileged,
                                  .systemd_cgroups = words.systemd};
  if (sandboxed) {
    options.library_folder = image::kDriverLibraries;
    options.program_folder = image::kDriverPrograms;
  }
  const image::Tree host(words.host_root);
  return image::plan_injection(host, image::read_gpu_request(sources), root, options);
}

void warn(const image::InjectionPlan& plan) {
  for (const std::string& warning : plan.warnings) core::say(core::Level::warning, warning);
}

/// Runs in place of this process.
int exec_words(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  throw Error(Code::not_found, text("run ", words.front(), ": ", std::strerror(errno)));
}

int run_by_engine(const RunWords& words, const std::string& engine) {
  RunRequest request = words.request;
  request.image = image::full_name(request.image);
  request.volumes.insert(request.volumes.begin(),
                         {.host = fs::current_path().string(), .path = "/workspace"});
  const image::InjectionPlan plan = plan_of(words, {}, nullptr, false);
  warn(plan);
  if (words.plan) {
    std::fputs(image::plan_text(plan).c_str(), stdout);
    return 0;
  }
  // The line is made for a shell, which also shows what --emit would print.
  return exec_words({"/bin/sh", "-c", "exec " + image::emit(engine, request, plan)});
}

/// Leaves the terminal; the words of the program go into a file.
void detach(const RunRequest& request) {
  const std::string name = request.name.empty() ? text("yoke-", ::getpid()) : request.name;
  if (::fork() != 0) {
    std::puts(name.c_str());
    std::fflush(stdout);
    ::_exit(0);
  }
  ::setsid();
  const fs::path log = fs::temp_directory_path() / (name + ".log");
  if (std::freopen(log.c_str(), "a", stdout) == nullptr ||
      std::freopen(log.c_str(), "a", stderr) == nullptr)
    ::_exit(kOurFault);
}

void print_plan(const image::InjectionPlan& plan, const image::Sandbox& sandbox) {
  std::fputs(image::plan_text(plan).c_str(), stdout);
  std::vector<std::string> words = sandbox.command;
  words.emplace_back("--");
  words.insert(words.end(), sandbox.program.begin(), sandbox.program.end());
  std::string line = "run";
  for (const std::string& word : words) line += " " + image::shell_quoted(word);
  std::puts(line.c_str());
}

int run_in_sandbox(const RunWords& words, const core::EnvironmentMap& variables) {
  const SandboxImage sandboxed(words.request.image, variables);
  const image::OpenedImage& opened = sandboxed.opened();
  const image::Tree root(opened.root);
  const image::InjectionPlan plan = plan_of(words, opened.settings, &root, true);
  const image::Sandbox sandbox = image::make_sandbox(words.request, opened.settings, plan,
                                                     {.root = opened.root,
                                                      .here = fs::current_path().string(),
                                                      .caller = variables,
                                                      .has_root = ::geteuid() == 0});
  warn(plan);
  if (words.plan) {
    print_plan(plan, sandbox);
    return 0;
  }
  const std::string folder = words.request.folder.empty() ? "/workspace" : words.request.folder;
  const image::Startable startable =
      image::check_program(root, sandbox.program.front(), sandbox.variables, folder);
  if (startable.exit_code != 0) {
    core::say(core::Level::error, text("yoke image run: ", startable.reason));
    return startable.exit_code;
  }
  if (words.request.detached) detach(words.request);
  return image::run_sandbox(sandbox, words.request, opened.root);
}

int emit(const RunWords& words) {
  RunRequest request = words.request;
  request.image = image::full_name(request.image);
  request.volumes.insert(request.volumes.begin(),
                         {.host = fs::current_path().string(), .path = "/workspace"});
  const image::InjectionPlan plan = plan_of(words, {}, nullptr, false);
  warn(plan);
  std::fputs(image::emit(words.emit, request, plan).c_str(), stdout);
  return 0;
}

}  // namespace

int image_run_command(const std::vector<std::string>& arguments) try {
  const core::EnvironmentMap variables = core::environment();
  const RunWords words = parse_run(arguments, variables);
  if (words.help) {
    std::fputs(run_usage().data(), stdout);
    return 0;
  }
  if (!words.emit.empty()) return emit(words);
  const std::string engine = choose_engine(words, variables);
  return engine == "sandbox" ? run_in_sandbox(words, variables) : run_by_engine(words, engine);
} catch (const Error& error) {
  core::say(core::Level::error, error.what());
  return kOurFault;
}

}  // namespace yoke::cli
