#include "yoke/image/oci_layout.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"
#include "yoke/image/layer.hpp"

namespace yoke::image {
namespace {

namespace fs = std::filesystem;
using core::Json;
using core::text;

constexpr std::uintmax_t kMostJson = std::uintmax_t{16} << 20;
constexpr std::chrono::minutes kLayerLimit{30};
constexpr std::size_t kDigestDigits = 64;

Json read_json(const fs::path& file) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (!error && size > kMostJson) {
    throw Error(Code::corrupt_data, text("read ", file.string(), ": ", core::bytes_text(size),
                                         ", the limit is ", core::bytes_text(kMostJson)));
  }
  Json value = core::parse_json(core::read_file(file), file.string());
  if (!value.is_object())
    throw Error(Code::corrupt_data, text("read ", file.string(), ": not an object"));
  return value;
}

/// The hexadecimal part of "sha256:...", and nothing else: it becomes a file's name.
std::string digest_of(const Json& descriptor, const std::string& what) {
  const std::string digest =
      descriptor.is_object() && descriptor.contains("digest") && descriptor["digest"].is_string()
          ? descriptor["digest"].get<std::string>()
          : "";
  constexpr std::string_view kPrefix = "sha256:";
  const std::string digits = digest.substr(std::min(kPrefix.size(), digest.size()));
  if (!digest.starts_with(kPrefix) || digits.size() != kDigestDigits ||
      digits.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw Error(Code::corrupt_data,
                text("read ", what, ": '", digest.substr(0, 80), "' is no sha256 digest"));
  }
  return digits;
}

std::string media_type(const Json& descriptor) {
  return descriptor.contains("mediaType") && descriptor["mediaType"].is_string()
             ? descriptor["mediaType"].get<std::string>()
             : "";
}

const Json& list_of(const Json& value, const char* name, const std::string& what) {
  if (!value.contains(name) || !value[name].is_array() || value[name].empty()) {
    throw Error(Code::corrupt_data, text("read ", what, ": no list '", name, "'"));
  }
  return value[name];
}

class Layout {
 public:
  explicit Layout(fs::path folder) : folder_(std::move(folder)) {
    const std::string index = (folder_ / "index.json").string();
    const Json entry = list_of(read_json(index), "manifests", index).front();
    digest_ = digest_of(entry, index);
    manifest_ = read_json(blob(digest_));
    if (media_type(entry).find("index") != std::string::npos || manifest_.contains("manifests")) {
      digest_ = digest_of(list_of(manifest_, "manifests", index).front(), index);
      manifest_ = read_json(blob(digest_));
    }
  }

  [[nodiscard]] const std::string& digest() const { return digest_; }

  [[nodiscard]] ImageSettings settings() const {
    const std::string file =
        blob(digest_of(manifest_.value("config", Json::object()), digest_)).string();
    return read_image_config(core::read_file(file), file);
  }

  [[nodiscard]] std::vector<fs::path> layers() const {
    std::vector<fs::path> files;
    for (const Json& layer : list_of(manifest_, "layers", blob(digest_).string())) {
      files.push_back(blob(digest_of(layer, digest_)));
    }
    return files;
  }

  void unpack(const fs::path& target) const {
    for (const Json& layer : list_of(manifest_, "layers", blob(digest_).string())) {
      unpack_layer(blob(digest_of(layer, digest_)), media_type(layer), target);
    }
  }

 private:
  [[nodiscard]] fs::path blob(const std::string& digits) const {
    return folder_ / "blobs" / "sha256" / digits;
  }

  /// tar sees the machine read-only and only the new folder to write into.
  static std::string tar(std::vector<std::string> words, const fs::path& target) {
    std::vector<std::string> command{"bwrap",
                                     "--ro-bind",
                                     "/",
                                     "/",
                                     "--dev",
                                     "/dev",
                                     "--bind",
                                     target.string(),
                                     target.string(),
                                     "--unshare-net",
                                     "--unshare-pid",
                                     "--die-with-parent",
                                     "--",
                                     "tar"};
    command.insert(command.end(), words.begin(), words.end());
    const core::ChildResult result = core::run_child({.command = command, .limit = kLayerLimit});
    if (!result.succeeded()) {
      throw Error(Code::corrupt_data, text("unpack a layer: tar ended with ", result.exit_code,
                                           ": ", core::trimmed(result.err).substr(0, 300)));
    }
    return result.out;
  }

  static void unpack_layer(const fs::path& file, const std::string& type, const fs::path& target) {
    const std::string unpacker = type.ends_with("zstd")   ? "--zstd"
                                 : type.ends_with("gzip") ? "-z"
                                                          : "--no-auto-compress";
    for (const std::string& name :
         core::split(tar({"-t", unpacker, "-f", file.string()}, target), '\n')) {
      hide(name, target);
    }
    tar({"-x", unpacker, "--numeric-owner", "-p", "--exclude=.wh.*", "-f", file.string(), "-C",
         target.string()},
        target);
  }

  /// A whiteout, .wh.NAME, takes NAME of the layers below away; .wh..wh..opq all of its folder.
  static void hide(const std::string& name, const fs::path& target) {
    const fs::path path(name);
    const std::string last = path.filename();
    if (!last.starts_with(".wh.")) return;
    const Tree tree(target);
    const auto folder = tree.resolve(path.parent_path());
    if (!folder) return;
    if (last == ".wh..wh..opq") {
      for (const std::string& entry : tree.list(*folder)) remove(tree.outside(*folder / entry));
    } else if (const std::string hidden = last.substr(4);
               !hidden.empty() && hidden != "." && hidden != "..") {
      remove(tree.outside(*folder / hidden));
    }
  }

  static void remove(const fs::path& path) {
    std::error_code error;
    fs::remove_all(path, error);  // does not follow links
  }

  fs::path folder_;
  std::string digest_;
  Json manifest_;
};

fs::path unpacked(const Layout& layout) {
  const fs::path images = core::cache_folder() / "images";
  fs::create_directories(images);
  const fs::path target = images / layout.digest();
  if (fs::is_directory(target)) return target;
  const fs::path partial = images / text(layout.digest(), ".part", ::getpid());
  fs::create_directory(partial);
  try {
    layout.unpack(partial);
  } catch (...) {
    std::error_code error;
    fs::remove_all(partial, error);
    throw;
  }
  std::error_code error;
  fs::rename(partial, target, error);  // another process may have been first
  if (error) fs::remove_all(partial, error);
  return target;
}

std::vector<std::string> texts_of(const Json& config, const char* name) {
  std::vector<std::string> out;
  if (!config.contains(name) || !config[name].is_array()) return out;
  for (const Json& item : config[name]) {
    if (item.is_string()) out.push_back(item.get<std::string>());
  }
  return out;
}

std::string text_of(const Json& config, const char* name) {
  return config.contains(name) && config[name].is_string() ? config[name].get<std::string>() : "";
}

}  // namespace

ImageSettings read_image_config(std::string_view json, std::string_view what) {
  const Json value = core::parse_json(json, what);
  ImageSettings settings;
  if (!value.is_object() || !value.contains("config") || !value["config"].is_object())
    return settings;
  const Json& config = value["config"];
  for (const std::string& variable : texts_of(config, "Env")) {
    const std::size_t equals = variable.find('=');
    if (equals != std::string::npos && equals > 0) {
      settings.variables.insert_or_assign(variable.substr(0, equals), variable.substr(equals + 1));
    }
  }
  settings.entrypoint = texts_of(config, "Entrypoint");
  settings.command = texts_of(config, "Cmd");
  settings.folder = text_of(config, "WorkingDir");
  settings.user = text_of(config, "User");
  return settings;
}

std::vector<fs::path> layer_files(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  return Layout(path).layers();
}

OpenedImage open_image(const fs::path& path) {
  if (!fs::is_directory(path)) {
    throw Error(Code::not_found, text("open image ", path.string(), ": no such folder"),
                "name a root folder or an OCI layout");
  }
  if (fs::exists(path / "oci-layout") && fs::exists(path / "index.json")) {
    const Layout layout(path);
    return {.root = unpacked(layout), .settings = layout.settings()};
  }
  return {.root = fs::canonical(path)};
}

}  // namespace yoke::image
