#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "image_commands.hpp"
#include "option_words.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/json.hpp"
#include "yoke/image/layer.hpp"

namespace yoke::cli {
namespace {

constexpr const char* kUsage =
    "usage: yoke image verify OCI-LAYOUT|LAYER.tar... [--json]\n"
    "\n"
    "Looks into the layers of an image for empty driver files, which a build under a GPU runtime\n"
    "leaves, and for copies of a driver; names layer and path.\n"
    "\n"
    "exit codes: 0 clean; 1 findings; 2 usage, or a file that cannot be read\n";

}  // namespace

int image_verify_command(const std::vector<std::string>& words) try {
  const OptionWords options =
      read_options({.command = "yoke image verify", .flags = {"--json", "--help", "-h"}}, words);
  if (options.has("--help") || options.has("-h")) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (options.rest.empty()) {
    throw Error(Code::invalid_argument, "yoke image verify: no image is named",
                "see yoke image verify --help");
  }
  core::Json findings = core::Json::array();
  for (const std::string& image : options.rest) {
    for (const std::filesystem::path& layer : image::layer_files(image)) {
      for (const image::LayerFault& fault : image::check_layer(image::read_layer(layer))) {
        findings.push_back({{"layer", layer.filename().string()},
                            {"path", fault.path},
                            {"severity", image::name(fault.severity)},
                            {"reason", fault.reason}});
      }
    }
  }
  if (options.has("--json")) {
    std::fputs(core::json_text({{"findings", findings}}).c_str(), stdout);
  } else {
    for (const core::Json& one : findings) {
      const auto word = [&](const char* name) { return one[name].get<std::string>(); };
      std::printf("%s: %s: %s: %s\n", word("layer").c_str(), word("severity").c_str(),
                  word("path").c_str(), word("reason").c_str());
    }
  }
  return findings.empty() ? 0 : 1;
} catch (const Error& error) {
  core::say(core::Level::error, error.what());
  return 2;
}

}  // namespace yoke::cli
