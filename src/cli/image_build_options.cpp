#include "image_build_options.hpp"

#include <filesystem>
#include <memory>
#include <system_error>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"
#include "yoke/doctor/machine.hpp"

namespace yoke::cli {
namespace {

namespace fs = std::filesystem;
using core::text;
using image::YokeSource;

/// The torch for which an installed Yoke was built: "2.9.1"; empty: the front program alone.
std::string torch_of_prefix(const fs::path& prefix) {
  std::error_code error;
  const fs::path facts = prefix / "share" / "yoke" / "build.json";
  if (!fs::is_regular_file(facts, error)) return {};
  return core::parse_json(core::read_file(facts), facts.string()).value("torch", "");
}

YokeSource named_source(const fs::path& path) {
  std::error_code error;
  if (fs::is_regular_file(path / "CMakeLists.txt", error))
    return {.kind = YokeSource::Kind::source, .path = path};
  if (fs::is_regular_file(path / "bin" / "yoke", error))
    return {.kind = YokeSource::Kind::prefix, .path = path};
  if (fs::is_regular_file(path, error)) return {.kind = YokeSource::Kind::program, .path = path};
  throw Error(
      Code::invalid_argument,
      text("--yoke ", path.string(), ": neither an installed Yoke, nor a checkout, nor a program"));
}

/// This program's own installation, else the program alone.
YokeSource own_source() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path prefix = self.parent_path().parent_path();
  if (!torch_of_prefix(prefix).empty()) return {.kind = YokeSource::Kind::prefix, .path = prefix};
  return {.kind = YokeSource::Kind::program, .path = self};
}

image::BuildHost build_host(const core::EnvironmentMap& variables) {
  const doctor::Machine machine({.root = "/", .variables = variables});
  image::BuildHost host{.driver = machine.driver().module};
  if (!host.driver) return host;
  for (const device::Card& card : machine.cards().all) host.cards.push_back(machine.facts_of(card));
  return host;
}

}  // namespace

std::vector<std::string> build_value_options() {
  return {"--cuda",    "--python", "--base", "--index-url", "--with",
          "--without", "--tag",    "--lock", "--yoke"};
}

BuildWords read_build_words(const OptionWords& words, const core::EnvironmentMap& variables) {
  if (words.rest.size() != 1)
    throw Error(Code::invalid_argument,
                words.rest.empty() ? std::string("yoke image: no release is named")
                                   : text("yoke image: '", words.rest[1], "' is one word too many"),
                "for example yoke image build v2.9");
  BuildWords out;
  out.request = {.release = words.rest[0],
                 .cuda = words.value("--cuda").value_or("auto"),
                 .python = words.value("--python").value_or(""),
                 .base = words.value("--base").value_or(""),
                 .index_url = words.value("--index-url").value_or(""),
                 .with = words.list("--with"),
                 .without = words.list("--without"),
                 .tag = words.value("--tag").value_or("")};
  std::error_code error;
  if (fs::is_regular_file(out.request.base, error))
    out.request.base_system = image::system_in_tar(out.request.base);
  if (out.request.cuda == "auto") out.host = build_host(variables);
  out.lock = words.value("--lock").value_or("");
  const auto named = words.value("--yoke");
  out.yoke = named ? named_source(fs::absolute(*named)) : own_source();
  return out;
}

std::optional<image::WheelLock> given_lock(const BuildWords& words, const image::BuildPlan& plan) {
  if (words.lock.empty()) return image::known_lock(plan);
  image::WheelLock lock = image::read_lock(core::read_file(words.lock), words.lock);
  image::check_lock(plan, lock);
  if (lock.torch.empty()) lock.torch = plan.torch();
  if (lock.python.empty()) lock.python = plan.python;
  return lock;
}

}  // namespace yoke::cli
