#include "yoke/archive/sealed_folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "yoke/core/descriptor.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::archive {
namespace {

namespace fs = std::filesystem;
using core::Json;
using core::text;

constexpr const char* kManifest = "manifest.json";
constexpr std::string_view kUnsealed = ".part";
constexpr int kVersion = 1;

std::string reason(int system_error) { return std::generic_category().message(system_error); }

[[noreturn]] void fail(const char* doing, const fs::path& path, int system_error) {
  throw Error(Code::io, text(doing, " ", path.string(), ": ", reason(system_error)));
}

std::string hex(const XXH128_hash_t& hash) {
  std::array<char, 33> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx%016llx",
                static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return digits.data();
}

core::Descriptor opened(const fs::path& path, int flags) {
  core::Descriptor file(::open(path.c_str(), flags | O_CLOEXEC));
  if (!file.is_open()) fail("open", path, errno);
  return file;
}

struct HashState {
  HashState() : state(XXH3_createState()) { XXH3_128bits_reset(state); }
  ~HashState() { XXH3_freeState(state); }
  HashState(const HashState&) = delete;
  HashState& operator=(const HashState&) = delete;
  XXH3_state_t* state;
};

SealedFile record_of(const fs::path& folder, const fs::path& path) {
  SealedFile file{.name = fs::relative(path, folder).generic_string()};
  const core::Descriptor from = opened(path, O_RDONLY);
  HashState hash;
  std::vector<char> block(std::size_t{1} << 20);
  while (true) {
    const ssize_t n = ::read(from.get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("read", path, errno);
    if (n == 0) break;
    XXH3_128bits_update(hash.state, block.data(), static_cast<std::size_t>(n));
    file.bytes += static_cast<std::uint64_t>(n);
  }
  file.xxh3 = hex(XXH3_128bits_digest(hash.state));
  return file;
}

std::string digest(std::string_view bytes) { return hex(XXH3_128bits(bytes.data(), bytes.size())); }

constexpr std::string_view kBefore = ",\n\"manifest\": ";
constexpr std::string_view kAfter = "}\n";

std::string manifest_text(std::string_view body) {
  return text("{\"xxh3\": \"", digest(body), "\"", kBefore, body, kAfter);
}

// The part of manifest_text() that its hash is over; empty where there is none.
std::string_view body_of(std::string_view bytes) {
  const std::size_t begin = bytes.find(kBefore);
  if (begin == std::string_view::npos || !bytes.ends_with(kAfter)) return {};
  const std::size_t from = begin + kBefore.size();
  return from + kAfter.size() < bytes.size()
             ? bytes.substr(from, bytes.size() - kAfter.size() - from)
             : std::string_view{};
}

void flush(const fs::path& path, int flags) {
  const core::Descriptor file = opened(path, flags);
  if (::fsync(file.get()) != 0 && errno != EINVAL && errno != EROFS) fail("flush", path, errno);
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path() != folder / kManifest)
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Json to_json(const Seal& seal) {
  Json files = Json::array();
  for (const SealedFile& file : seal.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh3", file.xxh3}});
  return {{"version", kVersion}, {"about", seal.about}, {"files", std::move(files)}};
}

Seal from_json(const Json& json, const fs::path& path) try {
  Seal seal{.about = json.at("about")};
  if (json.at("version").get<int>() > kVersion) {
    throw Error(Code::unsupported,
                text("read ", path.string(), ": written by a newer Yoke (version ",
                     json.at("version").get<int>(), ")"),
                "use that one");
  }
  for (const Json& file : json.at("files")) {
    seal.files.push_back({file.at("name"), file.at("bytes"), file.at("xxh3").get<std::string>()});
  }
  return seal;
} catch (const nlohmann::json::exception& error) {
  throw Error(Code::corrupt_data, text("read ", path.string(), ": a member is missing"))
      .caused_by(error);
}

[[noreturn]] void refuse(const fs::path& path, const std::string& why) {
  throw Error(Code::corrupt_data, text("verify ", path.string(), ": ", why));
}

// A name from a manifest must not lead out of its folder.
fs::path place_of(const fs::path& folder, const std::string& name) {
  const fs::path relative = fs::path(name).lexically_normal();
  if (relative.empty() || relative.is_absolute() || *relative.begin() == "..")
    refuse(folder / kManifest, text("names a file outside of its folder: ", name));
  return folder / relative;
}

void require_size(const fs::path& folder, const SealedFile& file) {
  const fs::path path = place_of(folder, file.name);
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) refuse(path, error.message());
  if (size != file.bytes) refuse(path, text("has ", size, " B, was saved with ", file.bytes));
}

// A folder that is there without being whole, or nothing.
std::optional<std::string> defect_of(const fs::path& folder) try {
  for (const SealedFile& file : read_seal(folder).files) require_size(folder, file);
  return std::nullopt;
} catch (const Error& error) {
  return error.message();
}

fs::path unsealed_name(const fs::path& target) {
  static std::atomic<unsigned> counter{0};
  return target.parent_path() /
         text(".", target.filename().string(), ".", ::getpid(), ".", counter++, kUnsealed);
}

}  // namespace

UnsealedFolder::UnsealedFolder(fs::path target)
    : target_(std::move(target)), path_(unsealed_name(target_)) {
  if (fs::exists(target_)) {
    throw Error(Code::invalid_argument, text("save ", target_.string(), ": it is there already"));
  }
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) fail("create", path_, error.value());
}

UnsealedFolder::~UnsealedFolder() {
  std::error_code ignored;
  if (!sealed_) fs::remove_all(path_, ignored);
}

// Note [The seal]
// Every file reaches the disk before the manifest, the manifest before the rename. The manifest
// carries a hash of its own text, so that a changed byte in it is found as well.
void UnsealedFolder::seal(const Json& about) {
  Seal seal{.about = about};
  for (const fs::path& file : files_in(path_)) {
    seal.files.push_back(record_of(path_, file));
    flush(file, O_RDONLY);
  }
  core::write_atomically(path_ / kManifest, manifest_text(core::json_line(to_json(seal))));
  flush(path_, O_RDONLY | O_DIRECTORY);
  if (::rename(path_.c_str(), target_.c_str()) != 0) fail("rename into place", target_, errno);
  sealed_ = true;
  flush(target_.parent_path().empty() ? fs::path(".") : target_.parent_path(),
        O_RDONLY | O_DIRECTORY);
}

Seal read_seal(const fs::path& folder) {
  const fs::path path = folder / kManifest;
  const std::string bytes = core::read_file(path);
  const std::string_view body = body_of(bytes);
  if (body.empty() || bytes != manifest_text(body)) refuse(path, "its bytes changed");
  return from_json(core::parse_json(body, path.string()), path);
}

bool is_sealed(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / kManifest, error);
}

void remove_sealed(const fs::path& folder) {
  std::error_code ignored;
  fs::remove(folder / kManifest, ignored);
  fs::remove_all(folder, ignored);
}

Seal verify(const fs::path& folder) {
  Seal seal = read_seal(folder);
  for (const SealedFile& file : seal.files) {
    require_size(folder, file);
    const fs::path path = place_of(folder, file.name);
    if (record_of(folder, path).xxh3 != file.xxh3) refuse(path, "its bytes changed");
  }
  return seal;
}

SealedFolders sealed_folders(const fs::path& root, std::string_view prefix) {
  SealedFolders found;
  std::error_code error;
  std::vector<fs::path> folders;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->is_directory() && entry->path().filename().string().starts_with(prefix))
      folders.push_back(entry->path());
  }
  std::sort(folders.rbegin(), folders.rend());
  for (const fs::path& folder : folders) {
    if (auto why = defect_of(folder)) {
      found.skipped.push_back({folder, std::move(*why)});
    } else {
      found.good.push_back(folder);
    }
  }
  return found;
}

void remove_unsealed(const fs::path& root) {
  std::error_code error;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (name.starts_with('.') && name.ends_with(kUnsealed)) fs::remove_all(entry->path(), ignored);
  }
}

void require_space(const fs::path& folder, std::uint64_t bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error) fail("look at the disk of", folder, error.value());
  if (space.available >= bytes) return;
  throw Error(Code::io,
              text("save to ", folder.string(), ": ", core::bytes_text(bytes), " needed, ",
                   core::bytes_text(space.available), " free"),
              "free space there, or keep fewer checkpoints");
}

}  // namespace yoke::archive
