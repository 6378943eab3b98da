#include "scene.hpp"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::whole {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* kMark = "YOKE_TEST_SCENE";

bool has_variable(pid_t pid, const std::string& assignment) try {
  const std::string variables =
      core::read_file(fs::path("/proc") / std::to_string(pid) / "environ");
  return (std::string(1, '\0') + variables)
             .find(std::string(1, '\0') + assignment + std::string(1, '\0')) != std::string::npos;
} catch (const Error&) {
  return false;  // it has ended, or is another user's
}

std::vector<pid_t> living_with_variable(const std::string& assignment) {
  std::vector<pid_t> found;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const auto number = core::parse_integer(entry->path().filename().string());
    if (!number) continue;
    const auto pid = static_cast<pid_t>(*number);
    if (!has_variable(pid, assignment)) continue;
    const auto process = core::identify(pid);
    if (process && core::is_alive(*process)) found.push_back(pid);
  }
  return found;
}

std::string big_endian(std::int64_t number) {
  std::string out;
  for (const int shift : {24, 16, 8, 0}) out.push_back(static_cast<char>((number >> shift) & 0xFF));
  return out;
}

void write_part(const fs::path& folder, const std::string& prefix, std::int64_t count,
                const SetShape& shape) {
  std::string pixels;
  std::string labels;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t label = i % shape.classes;
    labels.push_back(static_cast<char>(label));
    for (std::int64_t row = 0; row < shape.size; ++row) {
      const bool bright = row * shape.classes / shape.size == label;
      pixels.append(static_cast<std::size_t>(shape.size),
                    static_cast<char>(bright ? 200 : 20 + i % 16));
    }
  }
  write_idx(folder / (prefix + "-images-idx3-ubyte"), {count, shape.size, shape.size}, pixels);
  write_idx(folder / (prefix + "-labels-idx1-ubyte"), {count}, labels);
}

}  // namespace

std::string binary_dir() {
  return core::value_or(core::environment(), "YOKE_TEST_BINARY_DIR", YOKE_BINARY_DIR);
}

Scene::Scene() {
  std::string pattern = (fs::temp_directory_path() / "yoke-scene-XXXXXX").string();
  folder_ = ::mkdtemp(pattern.data());
  mark_ = core::text(::getpid(), '-', folder_.filename().string());
}

Scene::~Scene() { fs::remove_all(folder_); }

core::ChildResult Scene::yoke(const std::vector<std::string>& words,
                              const core::EnvironmentMap& set) {
  return run(binary_dir() + "/bin/yoke", words, set);
}

core::ChildResult Scene::run(const std::string& program, const std::vector<std::string>& words,
                             const core::EnvironmentMap& set) {
  return core::run_child(child(program, words, set));
}

std::unique_ptr<core::Child> Scene::start(const std::vector<std::string>& words) const {
  return std::make_unique<core::Child>(child(binary_dir() + "/bin/yoke", words, {}));
}

core::ChildOptions Scene::child(const std::string& program, const std::vector<std::string>& words,
                                const core::EnvironmentMap& set) const {
  core::ChildOptions options{.command = {program}, .limit = 90s};
  options.command.insert(options.command.end(), words.begin(), words.end());
  options.variables = core::environment();
  for (const char* outer :
       {"RANK", "WORLD_SIZE", "YOKE_RANKS", "YOKE_JOB_ID", "TORCHELASTIC_RUN_ID"}) {
    options.variables->erase(outer);
  }
  options.variables->insert_or_assign("CUDA_VISIBLE_DEVICES", "");
  options.variables->insert_or_assign("OMP_NUM_THREADS", "1");
  options.variables->insert_or_assign("XDG_CACHE_HOME", (folder_ / "cache").string());
  options.variables->insert_or_assign(kMark, mark_);
  for (const auto& [name, value] : set) options.variables->insert_or_assign(name, value);
  return options;
}

std::vector<pid_t> Scene::living_with(const std::string& variable) const {
  std::vector<pid_t> found = living_with_variable(std::string(kMark) + "=" + mark_);
  std::erase_if(found, [&](pid_t pid) { return !has_variable(pid, variable); });
  return found;
}

std::vector<pid_t> Scene::left_behind() const {
  const auto limit = std::chrono::steady_clock::now() + 10s;
  const std::string mine = std::string(kMark) + "=" + mark_;
  std::vector<pid_t> left = living_with_variable(mine);
  while (!left.empty() && std::chrono::steady_clock::now() < limit) {
    ::poll(nullptr, 0, 20);
    left = living_with_variable(mine);
  }
  return left;
}

std::vector<std::string> Scene::files_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::size_t lines_with(const std::string& part, const std::string& text) {
  const std::vector<std::string> lines = core::split(text, '\n');
  return static_cast<std::size_t>(
      std::count_if(lines.begin(), lines.end(),
                    [&](const std::string& line) { return line.find(part) != std::string::npos; }));
}

std::string last_line(const std::string& text) {
  const std::vector<std::string> lines = core::split(core::trimmed(text), '\n');
  return lines.back();
}

void write_images(const fs::path& folder, const SetShape& shape) {
  fs::create_directories(folder);
  write_part(folder, "train", shape.train, shape);
  write_part(folder, "t10k", shape.test, shape);
}

void write_idx(const fs::path& file, const std::vector<std::int64_t>& dims,
               const std::string& bytes) {
  std::string out{'\0', '\0', '\x08', static_cast<char>(dims.size())};
  for (const std::int64_t dim : dims) out += big_endian(dim);
  core::write_atomically(file, out + bytes);
}

}  // namespace yoke::whole
