#include "yoke/image/extend.hpp"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "work_folder.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"
#include "yoke/image/emit.hpp"
#include "yoke/stack/requirement.hpp"

namespace yoke::image {
namespace {

namespace fs = std::filesystem;
using nlohmann::literals::operator""_json_pointer;
using core::Json;
using core::text;

constexpr const char* kSecrets = "--mount=type=secret,id=pip.conf --mount=type=secret,id=ca.pem";
constexpr const char* kInstall = "/opt/yoke-image/install-wheels";

/// Whether a requirement of somebody's keeps the version that is there out.
bool excludes(const std::string& requirement, const std::string& package,
              const std::optional<stack::Version>& have) {
  const auto read = stack::Requirement::parse(requirement);
  return read && read->name == package && have && !read->versions.allow(*have);
}

/// Who wants another version of `package`: "pear 1.0 asks for torch>=2.12".
std::string askers(const Json& report, const std::vector<std::string>& asked,
                   const std::string& package, const std::optional<stack::Version>& have) {
  std::vector<std::string> out;
  for (const std::string& requirement : asked) {
    if (excludes(requirement, package, have)) out.push_back("you ask for " + requirement);
  }
  for (const Json& item : report.at("install")) {
    const Json& about = item.at("metadata");
    for (const Json& one : about.value("requires_dist", Json::array())) {
      const std::string requirement = one.get<std::string>();
      const bool optional = requirement.find("extra ==") != std::string::npos;
      if (!optional && excludes(requirement, package, have))
        out.push_back(text(about.at("name").get<std::string>(), " ",
                           about.at("version").get<std::string>(), " asks for ", requirement));
    }
  }
  return out.empty() ? "nobody says why" : core::joined(out, "; ");
}

}  // namespace

Extension judge_extension(std::string_view report, std::string_view state,
                          const std::vector<std::string>& asked, const ImageParts& parts) try {
  const Json json = core::parse_json(report, "pip's report");
  const Json guarded = core::parse_json(state, "the image's packages");
  Extension out{.lock = lock_of_report(report, "pip's report")};
  for (const LockedWheel& wheel : out.lock.wheels) {
    if (!parts.is_guarded(wheel.name)) continue;
    const bool is_there = guarded.contains(wheel.name);
    const std::string before = is_there ? guarded.at(wheel.name).get<std::string>() : "";
    out.conflicts.push_back(
        is_there ? text(wheel.name, " ", before, " would become ", wheel.version, ": ",
                        askers(json, asked, wheel.name, stack::Version::parse(before)))
                 : text(wheel.name, " ", wheel.version, " would come beside the image's own set"));
  }
  return out;
} catch (const nlohmann::json::exception& error) {
  throw Error(Code::corrupt_data, text("read pip's report: ", error.what()));
}

namespace {

/// Installing needs what an image of ours brings; the labels tell before anything is built.
void check_is_ours(const Engine& engine, const std::string& image) {
  const std::string doing = text("extend ", image);
  if (!engine.has(image))
    throw Error(Code::not_found, text(doing, ": ", name(engine.kind()), " has no such image"),
                "yoke image build makes one");
  const Json about = core::parse_json(engine.config(image), image);
  const Json labels = about.value("/config/Labels"_json_pointer, Json());
  if (!labels.is_object() || !labels.contains("yoke.stack.torch"))
    throw Error(
        Code::invalid_argument,
        text(doing, ": it has no label yoke.stack.torch, so yoke image build did not make it"),
        "extend takes images of yoke image build; others have no guard over their torch");
}

}  // namespace

ImageExtender::ImageExtender(Engine engine, core::EnvironmentMap variables)
    : engine_(std::move(engine)), variables_(std::move(variables)) {}

WheelLock ImageExtender::extend(const std::string& image,
                                const std::vector<std::string>& requirements,
                                const std::string& tag, const std::string& index_url) const {
  check_is_ours(engine_, image);
  const fs::path work = core::cache_folder() / "build";
  fs::create_directories(work);
  const fs::path log = work / "extend.log";
  fs::remove(log);
  std::string words;
  for (const std::string& one : requirements) words += " " + shell_quoted(one);
  if (!index_url.empty()) words += " --index-url " + shell_quoted(index_url);

  const WorkFolder context(work / text("extend-", ::getpid()));
  write_context(context.path(), {{.path = "Containerfile",
                                  .text = text("FROM ", image, "\nRUN ", kSecrets, " ", kInstall,
                                               " --more /report.json /state.json", words, "\n")}});
  const std::string asked_tag = text("localhost/yoke-lock:", ::getpid());
  BuildStep step{.context = context.path(),
                 .target = {},
                 .tag = asked_tag,
                 .secrets = pip_secrets(variables_),
                 .fresh = true,  // the index may have changed
                 .log = log};
  engine_.build(step);
  Extension extension;
  try {
    extension = judge_extension(engine_.read_file(asked_tag, "/report.json"),
                                engine_.read_file(asked_tag, "/state.json"), requirements);
  } catch (...) {
    engine_.remove(asked_tag);
    throw;
  }
  engine_.remove(asked_tag);
  if (!extension.conflicts.empty())
    throw Error(Code::unsupported,
                text("extend ", image, ": ", core::joined(extension.conflicts, " | ")),
                "ask for versions of these packages that take the image's torch, or build an image "
                "of another release");
  ImageParts one_layer = ImageParts::built_in();
  one_layer.layers = {{.name = "user", .match = {"*"}}};
  const std::string lock = lock_of_layer(extension.lock, one_layer, "user");
  std::string containerfile = text("FROM ", image, "\n");
  if (lock.empty()) {
    core::say(core::Level::info, "all of it is in the image already");
  } else {
    containerfile += text("COPY user.lock /opt/yoke-image/lock/user.lock\nRUN ", kSecrets, " ",
                          kInstall, " --guarded /opt/yoke-image/lock/user.lock\n");
  }
  write_context(context.path(), {{.path = "Containerfile", .text = containerfile},
                                 {.path = "user.lock", .text = lock}});
  step.tag = tag;
  step.fresh = false;
  engine_.build(step);
  return extension.lock;
}

}  // namespace yoke::image
