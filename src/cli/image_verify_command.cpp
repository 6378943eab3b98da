#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "image_commands.hpp"
#include "option_words.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"
#include "yoke/image/engine.hpp"
#include "yoke/image/image_content.hpp"

namespace yoke::cli {
namespace {

namespace fs = std::filesystem;
using core::text;

constexpr const char* kUsage =
    "usage: yoke image verify NAME|OCI-LAYOUT|LAYER.tar... [--lock FILE] [--json]\n"
    "\n"
    "Holds what is in an image against its lock, and looks in its layers for driver files, "
    "secrets,\n"
    "CUDA libraries that are there twice, and bytes that a later layer hides.\n"
    "\n"
    "  --lock FILE   instead of the lock in the image\n"
    "  --engine buildah|podman|docker   whose image NAME is\n"
    "\n"
    "exit codes: 0 clean; 1 findings; 2 usage, or a file that cannot be read\n";

constexpr const char* kLockInImage = "opt/yoke-image/requirements.lock";

/// The layers of what a person names. An image of an engine is copied out first.
class Layers {
 public:
  Layers(const std::string& image, const OptionWords& options) {
    if (fs::exists(image)) {
      files_ = image::layer_files(image);
      return;
    }
    const core::EnvironmentMap variables = core::environment();
    const auto engine = image::Engine::find(options.value("--engine").value_or(""), variables);
    const std::string name = image::full_name(image);
    if (!engine.has(name))
      throw Error(Code::not_found,
                  text("verify ", name, ": neither a file here nor an image of ",
                       image::name(engine.kind())),
                  "name an OCI layout, a layer, or an image");
    copy_ = core::cache_folder() / text("verify-", ::getpid());
    try {
      engine.unfold(name, copy_);
      files_ = image::layer_files(copy_);
    } catch (...) {
      remove_copy();
      throw;
    }
  }
  ~Layers() { remove_copy(); }
  Layers(const Layers&) = delete;
  Layers& operator=(const Layers&) = delete;

  [[nodiscard]] const std::vector<fs::path>& files() const { return files_; }

 private:
  void remove_copy() {
    std::error_code error;
    if (!copy_.empty()) fs::remove_all(copy_, error);
  }

  fs::path copy_;
  std::vector<fs::path> files_;
};

/// The lock that was named, else the one that the image brings; the top layer's counts.
std::optional<image::WheelLock> lock_of(const std::vector<fs::path>& layers,
                                        const image::ImageContent& content,
                                        const OptionWords& options) {
  if (const auto file = options.value("--lock"))
    return image::read_lock(core::read_file(*file), *file);
  const auto found = content.files().find(kLockInImage);
  if (found == content.files().end()) return std::nullopt;
  const auto lock = image::read_from_layer(layers.at(static_cast<std::size_t>(found->second.layer)),
                                           kLockInImage);
  return lock ? std::optional(image::read_lock(*lock, kLockInImage)) : std::nullopt;
}

std::vector<image::ImageFault> verify(const std::string& image, const OptionWords& options) {
  const Layers layers(image, options);
  image::ImageContent content;
  for (const fs::path& layer : layers.files()) content.add(image::read_layer(layer));
  std::vector<image::ImageFault> faults = content.faults();
  if (const auto lock = lock_of(layers.files(), content, options)) {
    const auto differences = content.against(*lock, image::ImageParts::built_in());
    faults.insert(faults.end(), differences.begin(), differences.end());
  }
  return faults;
}

}  // namespace

int image_verify_command(const std::vector<std::string>& words) try {
  const OptionWords options = read_options({.command = "yoke image verify",
                                            .values = {"--lock", "--engine"},
                                            .flags = {"--json", "--help", "-h"}},
                                           words);
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
    for (const image::ImageFault& fault : verify(image, options)) {
      findings.push_back({{"image", image},
                          {"id", fault.id},
                          {"layer", fault.layer},
                          {"path", fault.path},
                          {"severity", image::name(fault.severity)},
                          {"reason", fault.reason}});
    }
  }
  if (options.has("--json")) {
    std::fputs(core::json_text({{"findings", findings}}).c_str(), stdout);
  } else {
    for (const core::Json& one : findings) {
      const auto word = [&](const char* name) { return one[name].get<std::string>(); };
      const int layer = one["layer"].get<int>();
      std::printf("%s%s: %s: %s: %s [%s]\n", word("image").c_str(),
                  layer < 0 ? "" : text(" layer ", layer).c_str(), word("severity").c_str(),
                  word("path").c_str(), word("reason").c_str(), word("id").c_str());
    }
  }
  return findings.empty() ? 0 : 1;
} catch (const Error& error) {
  core::say(core::Level::error, error.what());
  return 2;
}

}  // namespace yoke::cli
