#include "image_run_options.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cli {
namespace {

using core::text;

constexpr const char* kUsage =
    "usage: yoke image run [OPTION...] ROOTFS|OCI-LAYOUT|NAME [--] [PROGRAM [ARGUMENT...]]\n"
    "\n"
    "Starts a program in an image, with the cards that were asked for: a folder in the built-in\n"
    "sandbox (bubblewrap), a name by docker, podman, apptainer or enroot, whichever is here. The\n"
    "current folder is /workspace inside. Options are docker's:\n"
    "\n"
    "  --gpus all|none|N|device=0,2   cards, by index, UUID or MIG (0:1)\n"
    "  -v HOST:INSIDE[:ro]  -w FOLDER  -e NAME[=VALUE]  --env-file FILE  -u UID[:GID]  -p "
    "HOST:INSIDE\n"
    "  -i  -t  -d  --rm  --name NAME  --shm-size SIZE  --entrypoint PROGRAM  --privileged\n"
    "\n"
    "  --plan               print each node, file, link and variable with its reason; run nothing\n"
    "  --emit FORM          write it for others: cdi, oci, docker, compose, devcontainer, podman,\n"
    "                       enroot, apptainer, slurm, kubernetes\n"
    "  --engine ENGINE      sandbox, docker, podman, apptainer, enroot\n"
    "  --writable           let writes go into the root folder; otherwise they are gone at the "
    "end\n"
    "  --loader-workers N --prefetch N --batch-bytes N   size shared memory for the data loader\n"
    "  --grace SECONDS      stop time in what --emit writes (30)\n"
    "  --allow-image-request  hear the image's own NVIDIA_VISIBLE_DEVICES\n"
    "  --systemd-cgroups    warn where systemd would drop the cards at a reload\n"
    "  --host-root FOLDER   look for the driver under FOLDER\n"
    "\n"
    "exit codes: the program's; 125 the container could not be made; 126 the program cannot be "
    "run;\n"
    "127 it is not there\n";

[[noreturn]] void refuse(std::string message, std::string hint = "see yoke image run --help") {
  throw Error(Code::invalid_argument, "yoke image run: " + std::move(message), std::move(hint));
}

std::int64_t number(const std::string& option, const std::string& value) {
  const auto parsed = core::parse_integer(value);
  if (!parsed || *parsed < 0) refuse(text(option, " '", value, "' is not a number"));
  return *parsed;
}

std::int64_t size(const std::string& option, const std::string& value) {
  const auto parsed = image::parse_size(value);
  if (!parsed) refuse(text(option, " '", value, "' is not a size"), "for example 8g");
  return *parsed;
}

class RunReader {
 public:
  RunReader(const std::vector<std::string>& words, const core::EnvironmentMap& caller)
      : words_(words), caller_(caller) {}

  RunWords read() {
    while (at_ < words_.size() && words_[at_].starts_with('-') && words_[at_] != "--") {
      const std::string word = words_[at_++];
      if (word.starts_with("--")) {
        long_option(word);
      } else {
        short_options(word);
      }
      if (out_.help) return std::move(out_);
    }
    take_program();
    return std::move(out_);
  }

 private:
  void take_program() {
    if (at_ < words_.size() && words_[at_] == "--") ++at_;
    if (at_ >= words_.size()) {
      if (out_.emit != "cdi") refuse("no image is named");
      return;
    }
    out_.request.image = words_[at_++];
    if (at_ < words_.size() && words_[at_] == "--") ++at_;
    out_.request.command.assign(words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
  }

  /// -it, -v A:B, -vA:B: letters without a value may stand together.
  void short_options(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const char letter = word[i];
      if (flag(std::string("-") + letter)) continue;
      constexpr std::string_view kWithValue = "vpewu";
      if (kWithValue.find(letter) == std::string_view::npos)
        refuse(text("unknown option -", letter));
      std::string value = word.substr(i + 1);
      if (value.starts_with('=')) value.erase(0, 1);
      if (value.empty()) value = next(std::string("-") + letter);
      return valued(std::string("-") + letter, value);
    }
  }

  void long_option(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (equals == std::string::npos && flag(name)) return;
    check_known(name);
    valued(name, equals == std::string::npos ? next(name) : word.substr(equals + 1));
  }

  std::string next(const std::string& option) {
    if (at_ >= words_.size()) refuse(text(option, " has no value"));
    return words_[at_++];
  }

  bool flag(const std::string& name) {
    image::RunRequest& request = out_.request;
    const std::array<std::pair<const char*, bool*>, 17> flags{
        {{"-i", &request.interactive},
         {"--interactive", &request.interactive},
         {"-t", &request.terminal},
         {"--tty", &request.terminal},
         {"-d", &request.detached},
         {"--detach", &request.detached},
         {"--rm", &request.remove},
         {"--privileged", &request.privileged},
         {"--writable", &request.writable},
         {"--allow-image-request", &request.allow_image_request},
         {"--plan", &out_.plan},
         {"--systemd-cgroups", &out_.systemd},
         {"-h", &out_.help},
         {"--help", &out_.help},
         {"--init", &ignored_},
         {"--ipc", nullptr},
         {"--quiet", &ignored_}}};
    const auto* found = std::find_if(flags.begin(), flags.end(),
                                     [&](const auto& one) { return name == one.first; });
    if (found == flags.end() || found->second == nullptr) return false;
    *found->second = true;
    return true;
  }

  static constexpr std::array kValued{
      "--volume",         "--publish",  "--env",        "--workdir",   "--user",
      "--name",           "--hostname", "--shm-size",   "--env-file",  "--gpus",
      "--entrypoint",     "--emit",     "--engine",     "--host-root", "--grace",
      "--loader-workers", "--prefetch", "--batch-bytes"};

  static void check_known(const std::string& name) {
    if (std::find(kValued.begin(), kValued.end(), name) != kValued.end()) return;
    std::vector<std::string> known(kValued.begin(), kValued.end());
    known.insert(known.end(), {"--rm", "--plan", "--privileged", "--writable", "--detach",
                               "--interactive", "--tty"});
    refuse(text("unknown option ", name), core::nearest(name, known)
                                              ? core::unknown_name_hint(name, known)
                                              : "see yoke image run --help");
  }

  void valued(const std::string& name, const std::string& value) {
    image::RunRequest& request = out_.request;
    if (name == "-v" || name == "--volume") {
      request.volumes.push_back(image::parse_volume(value));
    } else if (name == "-p" || name == "--publish") {
      request.ports.push_back(value);
    } else if (name == "-e" || name == "--env") {
      variable(value);
    } else if (name == "--env-file") {
      for (auto& [key, one] : image::parse_env_file(core::read_file(value), value, caller_)) {
        request.variables.insert_or_assign(key, one);
      }
    } else if (name == "-w" || name == "--workdir") {
      request.folder = value;
    } else if (name == "-u" || name == "--user") {
      request.user = value;
    } else if (name == "--name" || name == "--hostname") {
      request.name = value;
    } else if (name == "--gpus") {
      request.gpus = value;
    } else if (name == "--entrypoint") {
      request.entrypoint = value;
    } else {
      own(name, value);
    }
  }

  /// Options that docker does not have, and sizes.
  void own(const std::string& name, const std::string& value) {
    image::RunRequest& request = out_.request;
    if (name == "--shm-size") request.shared_bytes = size(name, value);
    if (name == "--batch-bytes") request.loader.batch_bytes = size(name, value);
    if (name == "--loader-workers") request.loader.workers = number(name, value);
    if (name == "--prefetch") request.loader.prefetch = number(name, value);
    if (name == "--grace") request.grace_seconds = number(name, value);
    if (name == "--emit") out_.emit = value;
    if (name == "--engine") engine(value);
    if (name == "--host-root") out_.host_root = value;
  }

  void engine(const std::string& value) {
    const std::vector<std::string> known{"sandbox", "docker", "podman", "apptainer", "enroot"};
    if (std::find(known.begin(), known.end(), value) == known.end()) {
      refuse(text("--engine '", value, "'"), core::unknown_name_hint(value, known));
    }
    out_.engine = value;
  }

  /// -e NAME takes the caller's value, and nothing where there is none.
  void variable(const std::string& value) {
    const std::size_t equals = value.find('=');
    const std::string name = value.substr(0, equals);
    if (name.empty()) refuse(text("-e '", value, "' has no name"));
    if (equals != std::string::npos) {
      out_.request.variables.insert_or_assign(name, value.substr(equals + 1));
    } else if (const auto found = caller_.find(name); found != caller_.end()) {
      out_.request.variables.insert_or_assign(name, found->second);
    }
  }

  const std::vector<std::string>& words_;
  const core::EnvironmentMap& caller_;
  std::size_t at_ = 0;
  bool ignored_ = false;
  RunWords out_;
};

}  // namespace

RunWords parse_run(const std::vector<std::string>& words, const core::EnvironmentMap& caller) {
  return RunReader(words, caller).read();
}

std::string_view run_usage() { return kUsage; }

}  // namespace yoke::cli
