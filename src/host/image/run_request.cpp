#include "yoke/image/run_request.hpp"

#include <algorithm>
#include <filesystem>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::image {
namespace {
constexpr std::int64_t kLeastShared = std::int64_t{1} << 30;
constexpr std::int64_t kLeastFiles = 65'536;
constexpr std::int64_t kFilesPerBatch = 256;
}  // namespace

std::int64_t shared_memory_need(const LoaderShape& loader) noexcept {
  return loader.workers * loader.prefetch * loader.batch_bytes;
}

std::int64_t RunRequest::shared_memory() const noexcept {
  return shared_bytes > 0 ? shared_bytes : std::max(kLeastShared, shared_memory_need(loader));
}

std::int64_t RunRequest::open_files() const noexcept {
  return std::max(kLeastFiles, loader.workers * loader.prefetch * kFilesPerBatch);
}

std::optional<std::int64_t> parse_size(const std::string& text) {
  std::string digits = text;
  if (digits.ends_with('b') || digits.ends_with('B')) digits.pop_back();
  constexpr std::string_view kUnits = "kmgt";
  int shift = 0;
  if (!digits.empty()) {
    const char unit = static_cast<char>(digits.back() | 0x20);
    if (const std::size_t at = kUnits.find(unit); at != std::string_view::npos) {
      shift = 10 * (static_cast<int>(at) + 1);
      digits.pop_back();
    }
  }
  const auto number = core::parse_integer(digits);
  if (!number || *number < 0 || *number > (std::int64_t{1} << 22) << (40 - std::min(shift, 40)))
    return std::nullopt;
  return *number << shift;
}

core::EnvironmentMap parse_env_file(const std::string& text, const std::string& name,
                                    const core::EnvironmentMap& caller) {
  core::EnvironmentMap out;
  int number = 0;
  for (const std::string& line : core::split(text, '\n')) {
    ++number;
    const std::string inner(core::trimmed(line));
    if (inner.empty() || inner[0] == '#') continue;
    const std::size_t equals = inner.find('=');
    const std::string key = inner.substr(0, equals);
    if (key.empty() || key.find(' ') != std::string::npos) {
      throw Error(Code::invalid_argument,
                  core::text("read ", name, ": line ", number, ": no name of a variable"),
                  "write NAME=value");
    }
    if (equals != std::string::npos) {
      out.insert_or_assign(key, inner.substr(equals + 1));
    } else if (const auto found = caller.find(key); found != caller.end()) {
      out.insert_or_assign(key, found->second);
    }
  }
  return out;
}

Volume parse_volume(const std::string& text) {
  const std::vector<std::string> parts = core::split(text, ':');
  if (parts.size() < 2 || parts.size() > 3 || parts[0].empty() || !parts[1].starts_with('/')) {
    throw Error(Code::invalid_argument, core::text("-v '", text, "': not HOST:CONTAINER[:ro]"),
                "for example -v $PWD/data:/data:ro");
  }
  Volume volume{.host = std::filesystem::absolute(parts[0]).lexically_normal(), .path = parts[1]};
  for (const std::string& option : core::split(parts.size() == 3 ? parts[2] : "rw", ',')) {
    if (option == "ro") volume.read_only = true;
    if (option != "ro" && option != "rw" && option != "z" && option != "Z") {
      throw Error(Code::invalid_argument, core::text("-v '", text, "': no option '", option, "'"),
                  "allowed: ro, rw, z, Z");
    }
  }
  return volume;
}

}  // namespace yoke::image
