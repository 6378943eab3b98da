#include "yoke/image/engine.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <system_error>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"
#include "yoke/image/tree.hpp"

namespace yoke::image {
namespace {

namespace fs = std::filesystem;
using core::text;
using Words = std::vector<std::string>;

struct EngineName {
  EngineKind kind;
  const char* name;
};
constexpr std::array kEngines{EngineName{EngineKind::buildah, "buildah"},
                              EngineName{EngineKind::podman, "podman"},
                              EngineName{EngineKind::docker, "docker"}};

void append(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

/// What a person reads of a line that quotes a whole command.
std::string shortened(const std::string& line) {
  constexpr std::size_t kHead = 80;
  constexpr std::size_t kTail = 160;
  if (line.size() <= kHead + kTail) return line;
  return line.substr(0, kHead) + " ... " + line.substr(line.size() - kTail);
}

/// The last lines of what a program said.
std::string end_of(const std::string& said) {
  constexpr std::size_t kLines = 8;
  const std::vector<std::string> lines = core::split(std::string(core::trimmed(said)), '\n');
  std::vector<std::string> last;
  for (std::size_t i = lines.size() - std::min(lines.size(), kLines); i < lines.size(); ++i)
    last.push_back(shortened(lines[i]));
  return core::joined(last, "\n");
}

struct Advice {
  const char* said;  // by an engine, a package manager or pip
  const char* what;
};

constexpr const char* kNoSpace = "free some space; nothing was left under the image's name";
constexpr const char* kOtherMachine =
    "the base is of another architecture than this machine; name one with --base";
constexpr const char* kBareBase = "the base has no apt or Python; take one of Debian or Ubuntu";
constexpr const char* kNoNetwork = "no network: the base, packages and wheels come from there";

/// The first that fits counts: what follows from a fault comes after it.
constexpr std::array kAdvice{
    Advice{"No space left", kNoSpace},
    Advice{"no space left", kNoSpace},
    Advice{"DO NOT MATCH THE HASHES",
           "a wheel differs from the lock: a proxy or the index changed it, or the lock is of "
           "other wheels"},
    Advice{"CERTIFICATE_VERIFY_FAILED", "set PIP_CERT to the certificate of your proxy"},
    Advice{"exec format error", kOtherMachine},
    Advice{"Exec format error", kOtherMachine},
    Advice{"apt-get: not found", kBareBase},
    Advice{"python3: not found", kBareBase},
    Advice{"Temporary failure", kNoNetwork},
    Advice{"Could not resolve", kNoNetwork},
    Advice{"no such host", kNoNetwork},
    Advice{"etwork is unreachable", kNoNetwork},
    Advice{"No matching distribution", "the index lacks a version; name another with --index-url"},
};

std::string advice(const std::string& said) {
  constexpr std::size_t kMost = 16 << 10;
  const std::string_view end(said.data() + said.size() - std::min(said.size(), kMost),
                             std::min(said.size(), kMost));
  for (const Advice& one : kAdvice) {
    if (end.find(one.said) != std::string_view::npos) return one.what;
  }
  return "";
}

/// A name that tells processes and times of the same one apart.
fs::path beside(const fs::path& path) { return path.string() + text(".part", ::getpid()); }

/// Puts `partial` in the place of `path`, folder or file.
void put_in_place(const fs::path& partial, const fs::path& path) {
  const fs::path old = path.string() + text(".old", ::getpid());
  std::error_code error;
  if (fs::exists(path)) fs::rename(path, old);
  fs::rename(partial, path);
  fs::remove_all(old, error);
}

}  // namespace

std::string_view name(EngineKind kind) noexcept {
  for (const EngineName& one : kEngines) {
    if (one.kind == kind) return one.name;
  }
  return "";
}

std::string full_name(const std::string& name) {
  const bool is_version = name.size() > 1 && name[0] == 'v' &&
                          std::isdigit(static_cast<unsigned char>(name[1])) != 0 &&
                          name.find_first_of("/:") == std::string::npos;
  return is_version ? "localhost/yoke:" + name : name;
}

ImageOutput parse_output(const std::string& text) {
  const std::size_t colon = text.find(':');
  ImageOutput out{.kind = text.substr(0, colon),
                  .path = colon == std::string::npos ? "" : text.substr(colon + 1)};
  const bool is_store = out.kind == "docker" || out.kind == "podman";
  static const Words known{"docker",         "podman", "oci", "oci-archive",
                           "docker-archive", "sqsh",   "sif"};
  if (std::find(known.begin(), known.end(), out.kind) == known.end())
    throw Error(Code::invalid_argument, core::text("--output '", text, "'"),
                core::unknown_name_hint(out.kind, known));
  if (is_store != out.path.empty())
    throw Error(Code::invalid_argument,
                core::text("--output ", text, is_store ? ": takes no path" : ": names no path"),
                "for example oci:DIR, oci-archive:FILE.tar, sqsh:FILE, docker");
  return out;
}

Engine::Engine(EngineKind kind, core::EnvironmentMap variables)
    : kind_(kind), variables_(std::move(variables)) {}

Engine Engine::find(const std::string& wanted, const core::EnvironmentMap& variables) {
  Words known;
  for (const EngineName& one : kEngines) {
    known.emplace_back(one.name);
    if (!wanted.empty() && wanted != one.name) continue;
    if (core::find_program(one.name, variables)) return {one.kind, variables};
    if (!wanted.empty())
      throw Error(Code::not_found, text("build an image: no program ", wanted, " here"),
                  text("apt-get install ", wanted, ", or name another with --engine"));
  }
  if (!wanted.empty())
    throw Error(Code::invalid_argument, text("--engine '", wanted, "'"),
                core::unknown_name_hint(wanted, known));
  throw Error(Code::not_found, "build an image: neither buildah nor podman nor docker is here",
              "apt-get install buildah; or yoke image render, and build it elsewhere");
}

std::string Engine::run(const Words& command, const std::string& doing) const {
  const core::ChildResult result =
      core::run_child({.command = command, .variables = variables_, .limit = kLimit});
  if (result.succeeded()) return result.out;
  const std::string& said = result.err.empty() ? result.out : result.err;
  throw Error(Code::io,
              text(doing, ": ", command.front(),
                   result.timed_out ? text(" took longer than ", kLimit.count(), " h")
                                    : text(" ended with ", result.exit_code),
                   ": ", end_of(said)),
              advice(said));
}

Words Engine::build_command(const BuildStep& step) const {
  Words words{std::string(name(kind_))};
  switch (kind_) {
    case EngineKind::buildah: append(words, {"bud", "--isolation", "chroot"}); break;
    case EngineKind::podman: append(words, {"build"}); break;
    case EngineKind::docker:
      append(words, {"buildx", "build", "--build-arg", "SOURCE_DATE_EPOCH=0", "--provenance=false",
                     "--output", text("type=docker,name=", step.tag, ",rewrite-timestamp=true")});
      break;
  }
  // --force-rm: else the container of a step that failed stays, with its files.
  if (kind_ != EngineKind::docker)
    append(words, {"--layers", "--force-rm", "--timestamp", "0", "-t", step.tag});
  if (step.fresh) words.emplace_back("--no-cache");
  if (!step.target.empty()) append(words, {"--target", step.target});
  for (const BuildSecret& secret : step.secrets)
    append(words, {"--secret", text("id=", secret.id, ",src=", secret.file.string())});
  append(words, {"-f", (step.context / "Containerfile").string(), step.context.string()});
  return words;
}

void Engine::build(const BuildStep& step) const {
  Words command = build_command(step);
  if (step.log.empty()) {
    (void)run(command, text("build ", step.tag));
    return;
  }
  // The engine's words go to the log while it works, not only at its end.
  Words logged{"sh", "-c", "log=$1; shift; exec \"$@\" >>\"$log\" 2>&1", "sh", step.log.string()};
  append(logged, command);
  try {
    (void)run(logged, text("build ", step.tag));
  } catch (const Error& error) {
    const std::string said = core::read_file(step.log);
    throw Error(error.code(),
                text("build ", step.tag, ": ", name(kind_), ": ", end_of(said),
                     " (log: ", step.log.string(), ")"),
                advice(said));
  }
}

void Engine::import(const fs::path& tar, const std::string& tag) const {
  const std::string doing = text("import ", tar.string());
  const std::string program(name(kind_));
  if (kind_ != EngineKind::buildah) {
    (void)run({program, "import", tar.string(), tag}, doing);
    return;
  }
  const std::string container(core::trimmed(run({program, "from", "scratch"}, doing)));
  try {
    (void)run({program, "add", "-q", container, fs::absolute(tar).string(), "/"}, doing);
    (void)run({program, "config", "--cmd", "/bin/bash", "--env",
               "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", container},
              doing);
    (void)run({program, "commit", "-q", "--timestamp", "0", container, tag}, doing);
  } catch (...) {
    (void)core::run_child({.command = {program, "rm", container}, .variables = variables_});
    throw;
  }
  (void)run({program, "rm", container}, doing);
}

bool Engine::has(const std::string& tag) const {
  const std::string program(name(kind_));
  const Words command = kind_ == EngineKind::docker
                            ? Words{program, "image", "inspect", tag}
                            : Words{program, "inspect", "--type", "image", tag};
  return core::run_child({.command = command, .variables = variables_}).succeeded();
}

std::string Engine::read_file(const std::string& tag, const std::string& path) const {
  if (kind_ == EngineKind::buildah) {
    const MountedImage mounted(*this, tag, variables_);
    if (auto bytes = Tree(mounted.root()).read(path)) return *std::move(bytes);
    throw Error(Code::not_found, text("read ", path, " of ", tag, ": there is no such file"));
  }
  const std::string program(name(kind_));
  const std::string doing = text("read ", path, " of ", tag);
  const std::string container(core::trimmed(run({program, "create", tag, "/"}, doing)));
  const fs::path target = fs::temp_directory_path() / text("yoke-file-", ::getpid());
  try {
    (void)run({program, "cp", container + ":" + path, target.string()}, doing);
  } catch (...) {
    (void)core::run_child({.command = {program, "rm", container}, .variables = variables_});
    throw;
  }
  (void)run({program, "rm", container}, doing);
  std::string bytes = core::read_file(target);
  fs::remove(target);
  return bytes;
}

std::string Engine::config(const std::string& tag) const {
  const std::string program(name(kind_));
  const std::string doing = text("read ", tag);
  if (kind_ == EngineKind::buildah) {
    const std::string said = run({program, "inspect", "--type", "image", tag}, doing);
    return core::parse_json(said, tag).value("OCIv1", core::Json::object()).dump();
  }
  core::Json all = core::parse_json(run({program, "image", "inspect", tag}, doing), tag);
  if (!all.is_array() || all.empty())
    throw Error(Code::corrupt_data, text(doing, ": ", program, " says nothing of it"));
  return core::Json{{"config", all[0].value("Config", core::Json::object())}}.dump();
}

void Engine::copy_to(const std::string& tag, const std::string& target) const {
  const std::string program(name(kind_));
  const std::string doing = text("copy ", tag, " to ", target);
  if (kind_ == EngineKind::docker) {
    (void)run({"skopeo", "copy", "-q", "docker-daemon:" + tag, target}, doing);
  } else {
    (void)run({program, "push", "-q", tag, target}, doing);
  }
}

void Engine::write(const std::string& tag, const ImageOutput& output) const {
  if (output.kind == "docker" || output.kind == "podman") {
    if (output.kind == name(kind_) || (output.kind == "podman" && kind_ == EngineKind::buildah))
      return;  // it lies in that store already: podman and buildah share theirs
    copy_to(tag, output.kind == "docker" ? "docker-daemon:" + tag : "containers-storage:" + tag);
    return;
  }
  const fs::path partial = beside(output.path);
  try {
    if (output.kind == "oci") {
      copy_to(tag, text("oci:", partial.string(), ":", tag.substr(tag.rfind(':') + 1)));
    } else if (output.kind == "oci-archive" || output.kind == "docker-archive") {
      copy_to(tag, text(output.kind, ":", partial.string(), ":", tag));
    } else {
      write_file_system(tag, {.kind = output.kind, .path = partial});
    }
    put_in_place(partial, output.path);
  } catch (...) {
    std::error_code error;
    fs::remove_all(partial, error);
    throw;
  }
}

void Engine::unfold(const std::string& tag, const fs::path& folder) const {
  const std::string target = text("oci:", folder.string(), ":image");
  if (kind_ == EngineKind::docker) return copy_to(tag, target);
  (void)run({std::string(name(kind_)), "push", "-q", "--disable-compression", tag, target},
            text("read ", tag));
}

void Engine::write_file_system(const std::string& tag, const ImageOutput& output) const {
  if (output.kind == "sif") {
    const fs::path archive = output.path.string() + ".tar";
    copy_to(tag, text("docker-archive:", archive.string(), ":", tag));
    (void)run({"apptainer", "build", output.path.string(), "docker-archive://" + archive.string()},
              text("write ", output.path.string()));
    fs::remove(archive);
    return;
  }
  const MountedImage mounted(*this, tag, variables_);
  (void)run({"mksquashfs", mounted.root().string(), output.path.string(), "-quiet", "-no-progress",
             "-comp", "zstd", "-Xcompression-level", "3", "-all-time", "0", "-mkfs-time", "0"},
            text("write ", output.path.string()));
}

void Engine::push(const std::string& tag, const std::string& reference) const {
  const std::string target =
      reference.find("://") == std::string::npos ? "docker://" + reference : reference;
  if (kind_ != EngineKind::docker && core::find_program("skopeo", variables_)) {
    (void)run({"skopeo", "copy", "-q", "containers-storage:" + tag, target},
              text("push ", reference));
  } else {
    copy_to(tag, target);
  }
}

void Engine::remove(const std::string& tag) const {
  (void)core::run_child(
      {.command = {std::string(name(kind_)), "rmi", tag}, .variables = variables_});
}

MountedImage::MountedImage(const Engine& engine, const std::string& tag,
                           const core::EnvironmentMap& variables)
    : variables_(variables) {
  if (engine.kind() != EngineKind::buildah)
    throw Error(Code::unsupported, text("mount ", tag, ": only buildah's images can be"),
                "apt-get install buildah");
  const auto run = [&](Words words) {
    const core::ChildResult result =
        core::run_child({.command = std::move(words), .variables = variables_});
    if (!result.succeeded())
      throw Error(Code::io, text("mount ", tag, ": buildah: ", end_of(result.err)));
    return std::string(core::trimmed(result.out));
  };
  container_ = run({"buildah", "from", "--pull-never", tag});
  try {
    root_ = run({"buildah", "mount", container_});
  } catch (...) {
    (void)core::run_child({.command = {"buildah", "rm", container_}, .variables = variables_});
    throw;
  }
}

MountedImage::~MountedImage() {
  try {
    (void)core::run_child({.command = {"buildah", "rm", container_}, .variables = variables_});
  } catch (...) {  // a container that stays costs nothing but its name
  }
}

}  // namespace yoke::image
