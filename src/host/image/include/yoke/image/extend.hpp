#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/image/build_image.hpp"

namespace yoke::image {

/// What pip would do for a user's packages on top of an image.
struct Extension {
  WheelLock lock{};                      ///< the wheels that come
  std::vector<std::string> conflicts{};  ///< guarded packages that would change, and who asked
};

/// Reads pip's report and the state of the guarded packages (name and version, as JSON).
/// `asked`: the user's own requirements.
/// Errors: corrupt_data.
[[nodiscard]] Extension judge_extension(std::string_view report, std::string_view state,
                                        const std::vector<std::string>& asked,
                                        const ImageParts& parts = ImageParts::built_in());

/// Builds `tag` on top of an image of ours, with more packages. torch, CUDA, cuDNN and NCCL stay
/// what they were: pip is asked first, and after the installation each of their files is looked at.
/// Errors: unsupported naming the packages that would change and who asked for it; as Engine's.
class ImageExtender {
 public:
  ImageExtender(Engine engine, core::EnvironmentMap variables);

  /// Returns what came.
  WheelLock extend(const std::string& image, const std::vector<std::string>& requirements,
                   const std::string& tag, const std::string& index_url) const;

 private:
  Engine engine_;
  core::EnvironmentMap variables_;
};

}  // namespace yoke::image
