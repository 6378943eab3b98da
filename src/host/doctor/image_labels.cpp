#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <functional>
#include <optional>
#include <system_error>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"
#include "yoke/doctor/image.hpp"

namespace yoke::doctor {
namespace {

namespace fs = std::filesystem;
using core::Json;
using core::text;

constexpr std::uint64_t kLargest = 16 << 20;  // a description is far smaller
constexpr int kDeepestIndex = 4;

[[noreturn]] void not_an_image(const fs::path& image, const std::string& why) {
  throw Error(Code::corrupt_data, text("read labels of ", image.string(), ": ", why),
              "give a folder or tar of an OCI layout, as skopeo or podman save write it");
}

/// Files of an image by their names inside it.
using ReadPart = std::function<std::optional<std::string>(const std::string&)>;

ReadPart folder_reader(const fs::path& image) {
  return [image](const std::string& name) -> std::optional<std::string> {
    std::error_code failed;
    const fs::path file = image / name;
    const auto size = fs::file_size(file, failed);
    if (failed) return std::nullopt;
    if (size > kLargest) not_an_image(image, name + " is too large for a description");
    return core::read_file(file);
  };
}

/// A number in a tar header: octal digits.
std::uint64_t octal(std::string_view field) {
  std::uint64_t out = 0;
  for (const char c : field) {
    if (c < '0' || c > '7') break;
    out = out * 8 + static_cast<std::uint64_t>(c - '0');
  }
  return out;
}

struct Place {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

std::map<std::string, Place> list_tar(const fs::path& image) {
  constexpr std::size_t kBlock = 512;
  std::map<std::string, Place> out;
  std::ifstream file(image, std::ios::binary);
  if (!file) throw Error(Code::io, text("read ", image.string(), ": may not be opened"));
  std::array<char, kBlock> header{};
  for (std::uint64_t at = 0; file.seekg(static_cast<std::streamoff>(at)) &&
                             file.read(header.data(), kBlock) && header[0] != '\0';) {
    const std::string_view bytes(header.data(), kBlock);
    if (bytes.substr(257, 5) != "ustar") not_an_image(image, "not a tar file");
    std::string name(bytes.substr(0, std::min<std::size_t>(100, bytes.find('\0'))));
    if (name.starts_with("./")) name.erase(0, 2);
    const std::uint64_t size = octal(bytes.substr(124, 12));
    if (size > (std::uint64_t{1} << 50)) not_an_image(image, "a size in the tar file is damaged");
    out[name] = {.offset = at + kBlock, .size = size};
    at += kBlock + (size + kBlock - 1) / kBlock * kBlock;
  }
  return out;
}

ReadPart tar_reader(const fs::path& image) {
  return [image, places = list_tar(image)](const std::string& name) -> std::optional<std::string> {
    const auto place = places.find(name);
    if (place == places.end()) return std::nullopt;
    if (place->second.size > kLargest)
      not_an_image(image, name + " is too large for a description");
    std::ifstream file(image, std::ios::binary);
    std::string bytes(place->second.size, '\0');
    file.seekg(static_cast<std::streamoff>(place->second.offset));
    if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
      not_an_image(image, name + " is cut short");
    return bytes;
  };
}

Labels labels_of(const Json& config) {
  Labels out;
  const Json settings = config.value("config", Json::object());
  if (!settings.contains("Labels") || settings["Labels"].is_null()) return out;
  for (const auto& [key, value] : settings["Labels"].items()) out[key] = value.get<std::string>();
  return out;
}

class LabelReader {
 public:
  LabelReader(const fs::path& image, ReadPart read) : image_(image), read_(std::move(read)) {}

  Labels labels() try {
    if (const auto archive = read_("manifest.json")) {
      const Json json = core::parse_json(*archive, "manifest.json");
      return labels_of(part(json.at(0).at("Config").get<std::string>()));
    }
    const Json manifest = manifest_of(part("index.json"), kDeepestIndex);
    return labels_of(blob(manifest.at("config")));
  } catch (const nlohmann::json::exception& error) {
    not_an_image(image_, text("its description has another form (", error.what(), ")"));
  }

 private:
  [[nodiscard]] Json part(const std::string& name) const {
    const auto bytes = read_(name);
    if (!bytes) not_an_image(image_, "no " + name);
    return core::parse_json(*bytes, image_.string() + ": " + name);
  }

  [[nodiscard]] Json blob(const Json& descriptor) const {
    const std::string digest = descriptor.at("digest").get<std::string>();
    const std::vector<std::string> parts = core::split(digest, ':');
    const bool plain = parts.size() == 2 &&
                       parts[1].find_first_not_of("0123456789abcdef") == std::string::npos &&
                       parts[0] == "sha256";
    if (!plain) not_an_image(image_, "its digest '" + digest + "' is no sha256");
    return part("blobs/sha256/" + parts[1]);
  }

  [[nodiscard]] Json manifest_of(const Json& index, int depth) const {
    if (index.contains("config")) return index;
    if (depth == 0) not_an_image(image_, "indexes within indexes");
    const Json& manifests = index.at("manifests");
    if (manifests.empty()) not_an_image(image_, "its index is empty");
    const auto ours = std::find_if(manifests.begin(), manifests.end(), [](const Json& item) {
      const Json platform = item.value("platform", Json::object());
      return platform.value("architecture", "amd64") == "amd64" &&
             platform.value("os", "linux") == "linux";
    });
    if (ours == manifests.end()) not_an_image(image_, "it has no part for linux/amd64");
    return manifest_of(blob(*ours), depth - 1);
  }

  const fs::path& image_;
  ReadPart read_;
};

}  // namespace

Labels read_image_labels(const fs::path& image) {
  std::error_code failed;
  if (!fs::exists(image, failed))
    throw Error(Code::not_found, text("read labels of ", image.string(), ": there is no such file"),
                "give a folder or tar of an OCI layout");
  ReadPart read = fs::is_directory(image, failed) ? folder_reader(image) : tar_reader(image);
  return LabelReader(image, std::move(read)).labels();
}

Labels labels_of_config(const std::string& config, const std::string& what) try {
  return labels_of(core::parse_json(config, what));
} catch (const nlohmann::json::exception& error) {
  throw Error(Code::corrupt_data,
              text("read labels of ", what, ": another form (", error.what(), ")"));
}

}  // namespace yoke::doctor
