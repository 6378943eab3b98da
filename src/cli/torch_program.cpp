#include "torch_program.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cli {
namespace {

namespace fs = std::filesystem;
using core::text;

fs::path own_prefix() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) throw Error(Code::io, "find this program's own place: " + error.message());
  return self.parent_path().parent_path();
}

/// torch's own libraries and those of the wheels beside it.
std::string library_folders(const fs::path& torch) {
  std::vector<std::string> folders{(torch / "lib").string()};
  std::error_code error;
  for (fs::directory_iterator entry(torch.parent_path() / "nvidia", error), end;
       !error && entry != end; entry.increment(error)) {
    const fs::path folder = entry->path() / "lib";
    std::error_code absent;
    if (fs::is_directory(folder, absent)) folders.push_back(folder.string());
  }
  std::sort(folders.begin() + 1, folders.end());
  return core::joined(folders, ":");
}

fs::path torch_folder(const core::Json& facts, const core::EnvironmentMap& variables) {
  const std::string chosen = core::value_or(variables, "YOKE_TORCH_DIR");
  return chosen.empty() ? facts.value("torch_dir", "") : chosen;
}

/// "2.9" of a wheel's version.py or a LibTorch archive's build-version; empty where neither says.
std::string minor_version(const std::string& text) {
  const std::size_t begin = text.find_first_of("0123456789");
  if (begin == std::string::npos) return {};
  const std::size_t first_dot = text.find('.', begin);
  const std::size_t second_dot = text.find('.', first_dot + 1);
  return second_dot == std::string::npos ? std::string{} : text.substr(begin, second_dot - begin);
}

std::string minor_version_in(const fs::path& torch) {
  std::error_code error;
  const fs::path wheel = torch / "version.py";
  const fs::path archive = torch / "build-version";
  if (fs::exists(archive, error)) return minor_version(core::read_file(archive));
  if (!fs::exists(wheel, error)) return {};
  const std::string words = core::read_file(wheel);
  const std::size_t at = words.find("__version__ =");
  return at == std::string::npos ? std::string{} : minor_version(words.substr(at));
}

void require_fit(const core::Json& facts, const fs::path& torch) {
  const std::string built = facts.value("torch", "");
  const std::string here = minor_version_in(torch);
  if (here.empty() || built.empty() || here == minor_version(built)) return;
  throw Error(
      Code::unsupported,
      text("load torch ", here, " from ", torch.string(), ": this Yoke was built with torch ",
           built, " (", facts.value("torch_dir", ""), ")"),
      "set YOKE_TORCH_DIR to a torch of that version, or build Yoke against this one");
}

}  // namespace

TorchProgram find_torch_program(const std::string& name, const core::EnvironmentMap& variables) {
  const fs::path prefix = own_prefix();
  TorchProgram program{.path = (prefix / "libexec" / "yoke" / name).string(), .extra = {}};
  std::error_code error;
  if (!fs::exists(program.path, error)) {
    throw Error(Code::unsupported,
                text("no program ", program.path, ": this Yoke was built without torch"),
                "build it with -DYOKE_TORCH_DIR=FOLDER, as tools/quickstart does");
  }
  const fs::path build_facts = prefix / "share" / "yoke" / "build.json";
  if (!fs::exists(build_facts, error)) return program;
  const core::Json facts = core::parse_json(core::read_file(build_facts), build_facts.string());
  const fs::path torch = torch_folder(facts, variables);
  if (!fs::exists(torch / "lib" / "libtorch_cpu.so", error)) {
    throw Error(
        Code::unsupported,
        text("load torch from ", torch.string(), ": no lib/libtorch_cpu.so there"),
        "set YOKE_TORCH_DIR to the folder `torch` of the wheel that this Yoke was built with");
  }
  require_fit(facts, torch);
  const std::string before = core::value_or(variables, "LD_LIBRARY_PATH");
  program.extra["LD_LIBRARY_PATH"] = library_folders(torch) + (before.empty() ? "" : ":" + before);
  return program;
}

TorchProgram find_plain_program(const std::string& name) {
  TorchProgram program{.path = (own_prefix() / "libexec" / "yoke" / name).string(), .extra = {}};
  std::error_code error;
  if (fs::exists(program.path, error)) return program;
  throw Error(Code::unsupported, text("no program ", program.path, ": Yoke is not whole here"),
              "build or install all of Yoke");
}

void become(const TorchProgram& program, const std::vector<std::string>& words) {
  for (const auto& [name, value] : program.extra)
    ::setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
  std::vector<std::string> strings{program.path};
  strings.insert(strings.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : strings) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(program.path.c_str(), arguments.data());
  throw Error(Code::io, text("start ", program.path, ": ", std::generic_category().message(errno)));
}

}  // namespace yoke::cli
