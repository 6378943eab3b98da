#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "image_build_options.hpp"
#include "image_commands.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cli {
namespace {

namespace fs = std::filesystem;
using core::text;

constexpr const char* kSetUsage =
    "  --cuda auto|none|12|12.8  which build of torch; auto: the best for the cards and driver "
    "here\n"
    "  --python 3.12             a base with that Python\n"
    "  --base NAME|FILE.tar|apt:SUITE   what it stands on; apt:bookworm makes one from the "
    "package\n"
    "                            sources of this machine\n"
    "  --with PART,...           toolkit (nvcc), tensorboard\n"
    "  --without PART,...        jupyter, ssh, yoke\n"
    "  --index-url URL           where pip looks\n"
    "  --lock FILE               wheels and hashes; else those of this program, or what pip finds\n"
    "  --yoke DIR|FILE           the Yoke for the image: an installed one, a checkout, a program\n"
    "  --tag NAME                localhost/yoke:v2.9 where not given\n";

std::string usage(const std::string& head, const std::string& more) {
  return head + "\nRELEASE is v2.6, v2.9, v2.11, newest, or another release of torch.\n\n" +
         kSetUsage + more;
}

OptionWords read_words(const std::string& command, const std::vector<std::string>& words,
                       std::vector<std::string> values, std::vector<std::string> flags) {
  const std::vector<std::string> common = build_value_options();
  values.insert(values.end(), common.begin(), common.end());
  flags.insert(flags.end(), {"--help", "-h"});
  return read_options({.command = command, .values = values, .flags = flags}, words);
}

bool wants_help(const OptionWords& words) { return words.has("--help") || words.has("-h"); }

image::BuildPlan plan_of(BuildWords& words) {
  image::BuildPlan plan = image::plan_build(words.request, words.host);
  if (!plan.has("yoke")) words.yoke = {};
  return plan;
}

void say_plan(const image::BuildPlan& plan) {
  core::say(core::Level::info, text("torch ", plan.torch(), " on ", plan.base, " with Python ",
                                    plan.python, "; ", plan.why));
}

image::ImageBuilder builder_of(const OptionWords& options, const BuildWords& words,
                               const core::EnvironmentMap& variables) {
  return {image::Engine::find(options.value("--engine").value_or(""), variables),
          variables,
          {.yoke = words.yoke, .fresh = options.has("--no-cache")}};
}

int failed(const Error& error) {
  core::say(core::Level::error, error.what());
  const bool usage = error.code() == Code::invalid_argument;
  return usage ? 2 : error.code() == Code::unsupported ? 3 : 1;
}

}  // namespace

int image_render_command(const std::vector<std::string>& arguments) try {
  const OptionWords options = read_words("yoke image render", arguments, {"--output"}, {});
  if (wants_help(options)) {
    std::fputs(usage("usage: yoke image render RELEASE --output DIR [OPTION...]\n\n"
                     "Writes what builds an image anywhere: Containerfile, locks, start script.\n",
                     "  --output DIR              a new or empty folder\n\n"
                     "exit codes: 0 written; 1 failed; 2 usage; 3 no set fits\n")
                   .c_str(),
               stdout);
    return 0;
  }
  BuildWords words = read_build_words(options, core::environment());
  const auto folder = options.value("--output");
  if (!folder)
    throw Error(Code::invalid_argument, "yoke image render: no folder is named",
                "add --output DIR");
  if (fs::exists(*folder) && !(fs::is_directory(*folder) && fs::is_empty(*folder)))
    throw Error(Code::invalid_argument, text("--output ", *folder, ": something is there"),
                "name a new or empty folder");
  const image::BuildPlan plan = plan_of(words);
  const auto lock = given_lock(words, plan);
  if (!lock)
    throw Error(Code::not_found,
                text("yoke image render: this program has no lock for ", image::lock_name(plan)),
                "yoke image lock writes one on a machine with a builder; pass it with --lock");
  image::write_context(*folder, image::render(plan, *lock, words.yoke));
  image::copy_yoke(words.yoke, *folder);
  say_plan(plan);
  std::printf("%s\n", (fs::path(*folder) / "Containerfile").c_str());
  return 0;
} catch (const Error& error) {
  return failed(error);
}

int image_lock_command(const std::vector<std::string>& arguments) try {
  const OptionWords options =
      read_words("yoke image lock", arguments, {"--output", "--engine"}, {"--no-cache"});
  if (wants_help(options)) {
    std::fputs(usage("usage: yoke image lock RELEASE [--output FILE] [OPTION...]\n\n"
                     "Asks pip, inside the base with the image's own Python, which wheels fit, and "
                     "writes them\n"
                     "with their hashes.\n",
                     "  --output FILE             else it is printed\n"
                     "  --engine buildah|podman|docker\n\n"
                     "exit codes: 0 written; 1 failed; 2 usage; 3 no set fits\n")
                   .c_str(),
               stdout);
    return 0;
  }
  const core::EnvironmentMap variables = core::environment();
  BuildWords words = read_build_words(options, variables);
  const image::BuildPlan plan = plan_of(words);
  const std::string lock = image::write_lock(builder_of(options, words, variables).make_lock(plan),
                                             image::ImageParts::built_in());
  if (const auto file = options.value("--output")) {
    core::write_atomically(*file, lock);
  } else {
    std::fputs(lock.c_str(), stdout);
  }
  return 0;
} catch (const Error& error) {
  return failed(error);
}

int image_build_command(const std::vector<std::string>& arguments) try {
  const OptionWords options =
      read_words("yoke image build", arguments, {"--engine", "--output", "--push", "--write-lock"},
                 {"--no-cache", "--plan", "--json"});
  if (wants_help(options)) {
    std::fputs(
        usage("usage: yoke image build RELEASE [OPTION...]\n\n"
              "Builds an OCI image whose torch, CUDA, cuDNN, NCCL, Python and glibc fit each "
              "other.\n",
              "  --engine buildah|podman|docker\n"
              "  --output KIND[:PATH]      docker, podman, oci:DIR, oci-archive:FILE, "
              "docker-archive:FILE,\n"
              "                            sqsh:FILE, sif:FILE\n"
              "  --push REFERENCE          to a registry\n"
              "  --write-lock FILE         the lock that was used\n"
              "  --no-cache                take no layer of an earlier build\n"
              "  --plan                    say what would be built, and why; build nothing\n\n"
              "exit codes: 0 built; 1 failed; 2 usage; 3 no set fits\n")
            .c_str(),
        stdout);
    return 0;
  }
  const core::EnvironmentMap variables = core::environment();
  BuildWords words = read_build_words(options, variables);
  const image::BuildPlan plan = plan_of(words);
  std::optional<image::ImageOutput> output;
  if (const auto text = options.value("--output")) output = image::parse_output(*text);
  auto lock = given_lock(words, plan);
  say_plan(plan);
  if (options.has("--plan")) {
    for (const auto& [name, value] : stack::to_labels(plan.labels))
      std::printf("%s=%s\n", name.c_str(), value.c_str());
    return 0;
  }
  const image::ImageBuilder builder = builder_of(options, words, variables);
  if (!lock) lock = builder.make_lock(plan);
  if (const auto file = options.value("--write-lock"))
    core::write_atomically(*file, image::write_lock(*lock, image::ImageParts::built_in()));
  builder.build(plan, *lock);
  if (output) builder.engine().write(plan.tag, *output);
  if (const auto reference = options.value("--push")) builder.engine().push(plan.tag, *reference);
  std::puts(plan.tag.c_str());
  return 0;
} catch (const Error& error) {
  return failed(error);
}

}  // namespace yoke::cli
