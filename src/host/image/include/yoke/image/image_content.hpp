#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "yoke/image/layer.hpp"
#include "yoke/image/wheel_lock.hpp"

namespace yoke::image {

/// A fault of an image as its layers show it.
struct ImageFault {
  std::string id{};  ///< docs/image.md lists them
  Severity severity = Severity::error;
  int layer = -1;  ///< counted from the base, from 0; -1: no one layer
  std::string path{};
  std::string reason{};
};

/// The files of an image, as its layers leave them, and what each layer hides.
///
///   ImageContent content;
///   for (const auto& file : layer_files(layout)) content.add(read_layer(file));
///   for (const ImageFault& fault : content.faults()) ...
///
/// Threads: one at a time. Cost: linear in the number of files.
class ImageContent {
 public:
  struct File {
    int layer = 0;
    char kind = '0';
    std::uint64_t size = 0;
  };

  /// Lays the next layer on top.
  void add(const std::vector<LayerEntry>& entries);

  [[nodiscard]] const std::map<std::string, File>& files() const noexcept { return files_; }

  /// Python packages by canonical name, with the version in each folder of packages.
  struct Installed {
    std::string folder{};
    std::string version{};
  };
  [[nodiscard]] std::map<std::string, std::vector<Installed>> packages() const;

  /// Driver files, secrets in any layer, bytes that a later layer hides, CUDA libraries that are
  /// there twice.
  [[nodiscard]] std::vector<ImageFault> faults() const;

  /// Packages of the lock that are missing or of another version, and of its kind (torch, CUDA)
  /// those that it does not name.
  [[nodiscard]] std::vector<ImageFault> against(const WheelLock& lock,
                                                const ImageParts& parts) const;

 private:
  void hide(const std::string& path, int by);
  void count_waste(const std::string& path, const File& file, int by);
  void secrets(const LayerEntry& entry, int layer);
  [[nodiscard]] std::vector<ImageFault> double_cuda() const;

  struct Waste {
    std::uint64_t bytes = 0;
    std::uint64_t most = 0;
    std::string path{};  ///< of the largest file
  };

  std::map<std::string, File> files_;
  std::map<std::pair<int, int>, Waste> waste_;  // by layer that holds and layer that hides
  std::vector<ImageFault> found_;
  int layers_ = 0;
};

}  // namespace yoke::image
