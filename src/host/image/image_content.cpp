#include "yoke/image/image_content.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "yoke/core/text.hpp"
#include "yoke/stack/requirement.hpp"

namespace yoke::image {
namespace {

using core::text;

/// Less is what any package manager hides by bringing its own lists up to date.
constexpr std::uint64_t kLeastWaste = std::uint64_t{4} << 20;

struct Secret {
  const char* pattern;  // of the whole path
  const char* what;
};
constexpr std::array kSecrets{
    Secret{"etc/ssh/ssh_host_*_key", "an SSH host key, the same in every container"},
    Secret{"*/.ssh/id_*", "an SSH key"},
    Secret{"*/.netrc", "passwords"},
    Secret{"*/.git-credentials", "passwords"},
    Secret{"*/.pypirc", "an index's password"},
    Secret{"*/.aws/credentials", "a cloud account's key"},
    Secret{"*/.docker/config.json", "a registry's password"},
    Secret{"*/.kube/config", "a cluster's key"},
    Secret{"*/.jupyter/jupyter_server_config.json", "a notebook's password"},
    Secret{"*/.huggingface/token", "an account's token"},
    Secret{"*/.cache/huggingface/token", "an account's token"},
    Secret{"run/secrets/?*", "a secret of the build"},
};

/// Libraries of which one process must meet one copy.
constexpr std::array kCudaLibraries{"libcudart.so.", "libcublas.so.",   "libcublasLt.so.",
                                    "libcudnn.so.",  "libnccl.so.",     "libcufft.so.",
                                    "libcurand.so.", "libcusolver.so.", "libcusparse.so.",
                                    "libnvrtc.so.",  "libnvJitLink.so."};

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string shown(const std::vector<ImageContent::Installed>& copies) {
  std::vector<std::string> versions;
  for (const auto& one : copies) versions.push_back(one.version);
  return core::joined(versions);
}

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

void ImageContent::count_waste(const std::string& path, const File& file, int by) {
  if (file.kind != '0' || file.layer == by) return;
  Waste& waste = waste_[{file.layer, by}];
  waste.bytes += file.size;
  if (file.size >= waste.most) {
    waste.most = file.size;
    waste.path = path;
  }
}

/// Takes a path away, with all below it.
void ImageContent::hide(const std::string& path, int by) {
  for (auto at = files_.lower_bound(path); at != files_.end();) {
    const bool below = at->first == path || at->first.starts_with(path + "/");
    if (!below) {
      if (!at->first.starts_with(path)) return;
      ++at;
      continue;
    }
    count_waste(at->first, at->second, by);
    at = files_.erase(at);
  }
}

void ImageContent::secrets(const LayerEntry& entry, int layer) {
  if (entry.kind != '0' || entry.size == 0 || entry.path.ends_with(".pub")) return;
  for (const Secret& secret : kSecrets) {
    if (core::matches_pattern(entry.path, secret.pattern))
      found_.push_back({"secret", Severity::error, layer, entry.path,
                        text(secret.what, ", for whoever has the image")});
  }
}

void ImageContent::add(const std::vector<LayerEntry>& entries) {
  const int layer = layers_++;
  // A whiteout hides what lies below its layer, so all of them come before the layer's own files.
  for (const LayerEntry& entry : entries) {
    const std::string name = name_of(entry.path);
    const std::string folder = folder_of(entry.path);
    if (name == ".wh..wh..opq") {
      hide(folder, layer);
    } else if (name.starts_with(".wh.")) {
      hide(folder.empty() ? name.substr(4) : folder + "/" + name.substr(4), layer);
    }
  }
  for (const LayerEntry& entry : entries) {
    if (name_of(entry.path).starts_with(".wh.")) continue;
    secrets(entry, layer);
    if (const auto old = files_.find(entry.path); old != files_.end() && entry.kind != '5')
      count_waste(entry.path, old->second, layer);
    files_[entry.path] = {.layer = layer, .kind = entry.kind, .size = entry.size};
  }
  for (const LayerFault& fault : check_layer(entries))
    found_.push_back({"driver-inside", fault.severity, layer, fault.path, fault.reason});
}

std::map<std::string, std::vector<ImageContent::Installed>> ImageContent::packages() const {
  std::map<std::string, std::vector<Installed>> out;
  constexpr std::string_view kEnd = ".dist-info/METADATA";
  for (const auto& [path, file] : files_) {
    if (!path.ends_with(kEnd)) continue;
    const std::string stem = path.substr(0, path.size() - kEnd.size());
    const std::string folder = folder_of(stem);
    // Deeper ones are copies that a package keeps for itself.
    if (!folder.ends_with("site-packages") && !folder.ends_with("dist-packages")) continue;
    const std::string name = name_of(stem);
    const std::size_t dash = name.find('-');
    if (dash == std::string::npos) continue;
    out[stack::canonical_name(name.substr(0, dash))].push_back(
        {.folder = folder, .version = name.substr(dash + 1)});
  }
  return out;
}

std::vector<ImageFault> ImageContent::double_cuda() const {
  std::map<std::string, std::vector<std::string>> copies;  // by library, whatever its version
  for (const auto& [path, file] : files_) {
    if (file.kind != '0' || path.find("/stubs/") != std::string::npos) continue;
    const std::string name = name_of(path);
    for (const char* library : kCudaLibraries) {
      if (name.starts_with(library)) copies[library].push_back(path);
    }
  }
  std::vector<ImageFault> faults;
  for (const auto& [library, paths] : copies) {
    for (std::size_t i = 1; i < paths.size(); ++i) {
      if (folder_of(paths[i]) == folder_of(paths[0])) continue;
      const File& file = files_.at(paths[i]);
      faults.push_back({"double-cuda", Severity::warning, file.layer, paths[i],
                        text("the image has this library twice, also as ", paths[0], " (",
                             core::bytes_text(file.size),
                             "): which one a program loads depends on its search path")});
    }
  }
  return faults;
}

std::vector<ImageFault> ImageContent::faults() const {
  std::vector<ImageFault> out = found_;
  for (const auto& [layers, waste] : waste_) {
    if (waste.bytes < kLeastWaste) continue;
    out.push_back({"waste", Severity::warning, layers.first, waste.path,
                   text(core::bytes_text(waste.bytes), " of this layer are hidden by layer ",
                        layers.second, " and travel all the same")});
  }
  const std::vector<ImageFault> twice = double_cuda();
  out.insert(out.end(), twice.begin(), twice.end());
  for (const auto& [name, copies] : packages()) {
    for (std::size_t i = 1; i < copies.size(); ++i) {
      if (copies[i].folder == copies[i - 1].folder)
        out.push_back({"package-twice", Severity::error, -1, name,
                       text("installed as ", copies[i - 1].version, " and as ", copies[i].version,
                            " in ", copies[i].folder)});
    }
  }
  return out;
}

std::vector<ImageFault> ImageContent::against(const WheelLock& lock,
                                              const ImageParts& parts) const {
  std::vector<ImageFault> out;
  const auto have = packages();
  const auto add = [&](const std::string& name, std::string reason) {
    out.push_back({"lock", Severity::error, -1, name, std::move(reason)});
  };
  for (const LockedWheel& wheel : lock.wheels) {
    const auto found = have.find(wheel.name);
    if (found == have.end()) {
      add(wheel.name, text("the lock has ", wheel.version, ", the image has none"));
    } else if (std::none_of(found->second.begin(), found->second.end(), [&](const auto& one) {
                 return stack::Version::parse(one.version) == stack::Version::parse(wheel.version);
               })) {
      add(wheel.name,
          text("the lock has ", wheel.version, ", the image has ", shown(found->second)));
    }
  }
  for (const auto& [name, copies] : have) {
    if (parts.is_guarded(name) && lock.find(name) == nullptr)
      add(name, text("the image has ", shown(copies), ", the lock has none"));
  }
  return out;
}

}  // namespace yoke::image
