#include "yoke/image/build_image.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <system_error>
#include <utility>

#include "image_data.hpp"
#include "work_folder.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"
#include "yoke/image/layer.hpp"

namespace yoke::image {
namespace {

namespace fs = std::filesystem;
using core::text;

std::optional<fs::path> first_file(const std::vector<std::string>& names) {
  for (const std::string& file : names) {
    std::error_code error;
    if (!file.empty() && fs::is_regular_file(file, error)) return fs::path(file);
  }
  return std::nullopt;
}

/// A root file system of Debian or Ubuntu from the machine's own package sources.
void make_root(const std::string& suite, const fs::path& tar,
               const core::EnvironmentMap& variables) {
  core::EnvironmentMap all = variables;
  all["SOURCE_DATE_EPOCH"] = "0";
  std::vector<std::string> command{"mmdebstrap", "--variant=minbase", "--mode=root", suite,
                                   tar.string()};
  const auto sources =
      first_file({"/etc/apt/sources.list.d/debian.sources",
                  "/etc/apt/sources.list.d/ubuntu.sources", "/etc/apt/sources.list"});
  if (sources) command.push_back(sources->string());
  const core::ChildResult result =
      core::run_child({.command = command, .variables = all, .limit = std::chrono::minutes{20}});
  if (!result.succeeded())
    throw Error(
        Code::io,
        text("make a base of ", suite, ": mmdebstrap: ", core::trimmed(result.err).substr(0, 600)),
        "name an image with --base");
}

}  // namespace

std::vector<BuildSecret> pip_secrets(const core::EnvironmentMap& variables) {
  const std::string home = core::value_or(variables, "HOME", "/root");
  std::vector<BuildSecret> out;
  if (const auto settings =
          first_file({core::value_or(variables, "PIP_CONFIG_FILE"), home + "/.config/pip/pip.conf",
                      home + "/.pip/pip.conf", "/etc/pip.conf"}))
    out.push_back({.id = "pip.conf", .file = *settings});
  if (const auto certificate = first_file({core::value_or(variables, "PIP_CERT"),
                                           core::value_or(variables, "REQUESTS_CA_BUNDLE"),
                                           core::value_or(variables, "SSL_CERT_FILE")}))
    out.push_back({.id = "ca.pem", .file = *certificate});
  return out;
}

std::string system_in_tar(const fs::path& tar) {
  std::optional<std::string> said = read_from_layer(tar, "usr/lib/os-release");
  if (!said) said = read_from_layer(tar, "etc/os-release");
  std::string id;
  std::string version;
  for (const std::string& line : core::split(said.value_or(""), '\n')) {
    std::string value = line.substr(std::min(line.size(), line.find('=') + 1));
    std::erase(value, '"');
    if (line.starts_with("ID=")) id = value;
    if (line.starts_with("VERSION_ID=")) version = value;
  }
  return id.empty() ? "" : id + version;
}

std::string lock_name(const BuildPlan& plan) {
  return text("image-", plan.set.patch->torch.text(), "-", plan.set.build->wheel, "-py",
              plan.python);
}

std::optional<WheelLock> known_lock(const BuildPlan& plan) {
  // The locks hold Jupyter; what more was asked for is not in them.
  if (!plan.has("jupyter") || plan.has("tensorboard") || plan.has("toolkit")) return std::nullopt;
  const std::string name = lock_name(plan);
  for (const LockText& lock : lock_texts()) {
    if (lock.name == name) return read_lock(lock.text, name);
  }
  return std::nullopt;
}

ImageBuilder::ImageBuilder(Engine engine, core::EnvironmentMap variables, BuildOptions options)
    : engine_(std::move(engine)), variables_(std::move(variables)), options_(std::move(options)) {}

fs::path ImageBuilder::folder(const std::string& name) const {
  const fs::path work = options_.work.empty() ? core::cache_folder() / "build" : options_.work;
  fs::create_directories(work);
  return work / name;
}

void ImageBuilder::prepare_base(BuildPlan& plan) const {
  const bool from_apt = plan.base.starts_with("apt:");
  std::error_code error;
  if (!from_apt && !fs::is_regular_file(plan.base, error)) return;
  fs::path tar = plan.base;
  std::string name = tar.stem().string();
  if (from_apt) {
    name = plan.base.substr(4);
    tar = folder("base-" + name + ".tar");
    if (!fs::exists(tar)) {
      core::say(core::Level::info, text("making a base of ", name));
      const fs::path partial = folder(text("base-", name, "-", ::getpid(), ".tar"));
      make_root(name, partial, variables_);
      fs::rename(partial, tar);
    }
  }
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '-');
  plan.base = "localhost/yoke-base:" + name;
  // The tar may have changed since, so it is imported anew; equal bytes give an equal layer.
  if (!from_apt || !engine_.has(plan.base)) engine_.import(tar, plan.base);
}

WheelLock ImageBuilder::make_lock(BuildPlan plan) const {
  prepare_base(plan);
  const WorkFolder context(folder(text("lock-", ::getpid())));
  write_context(context.path(), render_lock_stage(plan));
  const std::string tag = text("localhost/yoke-lock:", ::getpid());
  const fs::path log = folder(lock_name(plan) + "-lock.log");
  fs::remove(log);
  core::say(core::Level::info, text("asking pip which wheels fit (log: ", log.string(), ")"));
  engine_.build({.context = context.path(),
                 .target = "lock",
                 .tag = tag,
                 .secrets = pip_secrets(variables_),
                 .fresh = options_.fresh,
                 .log = log});
  WheelLock lock;
  try {
    lock = lock_of_report(engine_.read_file(tag, "/report.json"), "pip's report");
  } catch (...) {
    engine_.remove(tag);
    throw;
  }
  engine_.remove(tag);
  lock.torch = plan.torch();
  lock.python = plan.python;
  return lock;
}

void ImageBuilder::build(BuildPlan plan, const WheelLock& lock) const {
  check_lock(plan, lock);
  prepare_base(plan);
  const WorkFolder context(folder(text("context-", ::getpid())));
  write_context(context.path(), render(plan, lock, options_.yoke));
  copy_yoke(options_.yoke, context.path());
  const fs::path log = folder(lock_name(plan) + ".log");
  fs::remove(log);
  core::say(core::Level::info,
            text("building ", plan.tag, ": ", plan.why, " (log: ", log.string(), ")"));
  engine_.build({.context = context.path(),
                 .target = {},
                 .tag = plan.tag,
                 .secrets = pip_secrets(variables_),
                 .fresh = options_.fresh,
                 .log = log});
}

}  // namespace yoke::image
