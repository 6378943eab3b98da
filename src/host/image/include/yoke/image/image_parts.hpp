#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::image {

/// An image on which Yoke's own stand.
struct BaseImage {
  std::string system{};  ///< debian12
  std::string image{};   ///< docker.io/library/debian:bookworm-slim
  std::string suite{};   ///< bookworm, as mmdebstrap names it
  std::string python{};  ///< 3.11
  std::string glibc{};
};

/// What an image is put together from: stack/image.json.
struct ImageParts {
  using Names = std::vector<std::string>;

  std::vector<BaseImage> bases{};
  std::map<std::string, Names> apt{};      ///< by feature; "always" in every image
  std::map<std::string, Names> pip{};      ///< by feature
  std::map<std::string, Names> toolkit{};  ///< wheels with nvcc, by CUDA's major version
  struct Layer {
    std::string name{};
    Names match{};
  };
  std::vector<Layer> layers{};
  Names order{};              ///< of the layers, from the base up
  Names guarded{};            ///< patterns of packages that a user's layer may not change
  Names features{};           ///< in an image unless --without names them
  Names more{};               ///< in it where --with names them
  Names yoke{};               ///< releases of torch on which Yoke is built and tested, oldest first
  std::string torch_index{};  ///< with a wheel's name after it: .../whl/cu126

  /// The one compiled into this program.
  [[nodiscard]] static const ImageParts& built_in();
  /// Errors: corrupt_data with `what` and the part that is missing.
  [[nodiscard]] static ImageParts parse(std::string_view text, std::string_view what);

  /// The layer of a package: the first whose patterns fit its canonical name.
  [[nodiscard]] const std::string& layer_of(std::string_view package) const;
  [[nodiscard]] bool is_guarded(std::string_view package) const;
};

}  // namespace yoke::image
