#include <algorithm>
#include <system_error>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"
#include "yoke/stack/inventory.hpp"

namespace yoke::stack {
namespace {

namespace fs = std::filesystem;
using core::EnvironmentMap;

fs::path below(const fs::path& root, const fs::path& path) { return root / path.relative_path(); }

bool is_there(const fs::path& path) {
  std::error_code failed;
  return fs::exists(path, failed);
}

/// "3.11" of python3.11; empty for another name.
std::string version_in(const std::string& name) {
  constexpr std::string_view kPrefix = "python";
  if (!name.starts_with(kPrefix)) return "";
  const auto version = Version::parse(std::string_view(name).substr(kPrefix.size()));
  return version && version->release().size() >= 2 ? version->series(2) : "";
}

/// The folder lib/pythonX.Y of a prefix; the newest where there are several.
fs::path library_folder(const fs::path& prefix, const std::string& version) {
  if (!version.empty()) return prefix / "lib" / ("python" + version);
  fs::path best;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(prefix / "lib", failed)) {
    const std::string found = version_in(entry.path().filename().string());
    const std::string chosen = version_in(best.filename().string());
    if (!found.empty() && (chosen.empty() || *Version::parse(found) > *Version::parse(chosen)))
      best = entry.path();
  }
  return best;
}

std::string setting(const fs::path& file, std::string_view key) try {
  for (const std::string& line : core::split(core::read_file(file), '\n')) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos && core::trimmed(line.substr(0, equals)) == key)
      return std::string(core::trimmed(std::string_view(line).substr(equals + 1)));
  }
  return "";
} catch (const Error&) {
  return "";
}

std::string first_line(const fs::path& file) try {
  return std::string(core::trimmed(core::split(core::read_file(file), '\n').front()));
} catch (const Error&) {
  return "";
}

/// The first python3 or python in PATH, under its own name: a virtual environment's is a link out.
fs::path python_in_path(const EnvironmentMap& variables, const fs::path& root) {
  const std::string path = core::value_or(variables, "PATH", "/usr/local/bin:/usr/bin:/bin");
  for (const std::string& folder : core::split(path, ':')) {
    for (const char* name : {"python3", "python"}) {
      const fs::path program = below(root, folder) / name;
      if (!folder.empty() && is_there(program)) return program;
    }
  }
  return {};
}

/// The version of an interpreter by the name at the end of its links.
std::string version_of(const fs::path& program) {
  std::error_code failed;
  const fs::path real = fs::canonical(program, failed);
  return failed ? "" : version_in(real.filename().string());
}

class Finder {
 public:
  Finder(const EnvironmentMap& variables, const fs::path& root)
      : variables_(variables), root_(root) {}

  PythonPlace find() {
    add_python_path();
    const std::string active = core::value_or(variables_, "VIRTUAL_ENV");
    out_.program = python_in_path(variables_, root_);
    fs::path prefix = out_.program.parent_path().parent_path();
    if (!active.empty()) {
      prefix = below(root_, active);
      out_.program = prefix / "bin/python3";
    }
    if (out_.program.empty()) return out_;
    if (out_.program.parent_path().filename() == "shims") prefix = chosen_by_pyenv(prefix);
    const fs::path config = prefix / "pyvenv.cfg";
    if (!is_there(config)) {
      out_.version = version_of(out_.program);
      add_system(prefix);
      return out_;
    }
    add_environment(prefix, config);
    return out_;
  }

 private:
  /// pyenv puts scripts in PATH that start the version which a file names.
  [[nodiscard]] fs::path chosen_by_pyenv(const fs::path& pyenv) {
    const std::string version = first_line(pyenv / "version");
    const fs::path prefix = pyenv / "versions" / version;
    if (!version.empty() && is_there(prefix)) out_.program = prefix / "bin/python3";
    return out_.program.parent_path().parent_path();
  }

  void add(const fs::path& folder) {
    const bool known =
        std::find(out_.folders.begin(), out_.folders.end(), folder) != out_.folders.end();
    if (!known && is_there(folder)) out_.folders.push_back(folder);
  }

  void add_python_path() {
    for (const std::string& folder : core::split(core::value_or(variables_, "PYTHONPATH"), ':')) {
      if (!folder.empty()) add(below(root_, folder));
    }
  }

  void add_environment(const fs::path& prefix, const fs::path& config) {
    std::string version = setting(config, "version");
    if (version.empty()) version = setting(config, "version_info");
    if (const auto parsed = Version::parse(version)) out_.version = parsed->series(2);
    const fs::path library = library_folder(prefix, out_.version);
    if (out_.version.empty()) out_.version = version_in(library.filename().string());
    add(library / "site-packages");
    if (setting(config, "include-system-site-packages") == "true") {
      const std::string home = setting(config, "home");
      if (!home.empty()) add_system(below(root_, fs::path(home).parent_path()));
    }
  }

  void add_system(const fs::path& prefix) {
    if (out_.version.empty())
      out_.version = version_in(library_folder(prefix, "").filename().string());
    const std::string name = "python" + out_.version;
    const std::string home = core::value_or(variables_, "HOME");
    if (!home.empty() && core::value_or(variables_, "PYTHONNOUSERSITE").empty())
      add(below(root_, home) / ".local/lib" / name / "site-packages");
    add(root_ / "usr/local/lib" / name / "dist-packages");
    add(library_folder(prefix, out_.version) / "site-packages");
    add(root_ / "usr/lib/python3/dist-packages");
  }

  const EnvironmentMap& variables_;
  const fs::path& root_;
  PythonPlace out_;
};

}  // namespace

PythonPlace find_python(const EnvironmentMap& variables, const fs::path& root) {
  return Finder(variables, root).find();
}

}  // namespace yoke::stack
