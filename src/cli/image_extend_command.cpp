#include <cctype>
#include <cstdio>
#include <string>
#include <vector>

#include "image_commands.hpp"
#include "option_words.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/image/extend.hpp"

namespace yoke::cli {
namespace {

constexpr const char* kUsage =
    "usage: yoke image extend NAME --pip \"PACKAGE...\" [--tag NAME] [--index-url URL]\n"
    "\n"
    "Builds on top of an image that yoke image build made. torch, CUDA, cuDNN and NCCL stay what "
    "they\n"
    "were, or nothing is built and the package that asked for another one is named.\n"
    "\n"
    "  --pip \"A B>=2\"   packages, as pip takes them; may be given more than once\n"
    "  --tag NAME       NAME-extended where not given\n"
    "  --engine buildah|podman|docker\n"
    "\n"
    "exit codes: 0 built; 1 failed; 2 usage; 3 refused\n";

std::vector<std::string> packages_of(const OptionWords& options) {
  std::vector<std::string> out;
  const auto found = options.values.find("--pip");
  if (found == options.values.end()) return out;
  for (const std::string& value : found->second) {
    for (const std::string& word : core::split(value, ' ')) {
      if (!word.empty()) out.push_back(word);
    }
  }
  return out;
}

}  // namespace

int image_extend_command(const std::vector<std::string>& words) try {
  const OptionWords options = read_options({.command = "yoke image extend",
                                            .values = {"--pip", "--tag", "--engine", "--index-url"},
                                            .flags = {"--help", "-h"}},
                                           words);
  if (options.has("--help") || options.has("-h")) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  const std::vector<std::string> packages = packages_of(options);
  if (options.rest.size() != 1 || packages.empty()) {
    throw Error(Code::invalid_argument,
                "yoke image extend: takes one image and --pip \"PACKAGE...\"",
                "see yoke image extend --help");
  }
  const std::string image = image::full_name(options.rest[0]);
  const std::string tag = options.value("--tag").value_or(image + "-extended");
  const core::EnvironmentMap variables = core::environment();
  const image::ImageExtender extender(
      image::Engine::find(options.value("--engine").value_or(""), variables), variables);
  const image::WheelLock came =
      extender.extend(image, packages, tag, options.value("--index-url").value_or(""));
  core::say(
      core::Level::info,
      core::text(came.wheels.size(), " wheels came; torch, CUDA, cuDNN and NCCL are unchanged"));
  std::puts(tag.c_str());
  return 0;
} catch (const Error& error) {
  core::say(core::Level::error, error.what());
  const bool usage = error.code() == Code::invalid_argument;
  return usage ? 2 : error.code() == Code::unsupported ? 3 : 1;
}

}  // namespace yoke::cli
