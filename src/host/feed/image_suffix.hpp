#pragma once

#include <string>
#include <string_view>

namespace yoke::feed {

/// What stands behind the last dot, in lower case.
[[nodiscard]] std::string lower_suffix(std::string_view name);

/// "jpg", "jpeg", "png", and "webp" where Yoke was built with libwebp.
[[nodiscard]] bool is_image_suffix(std::string_view lower_case);

/// Suffixes of images that torchvision's loader takes and ours does not.
[[nodiscard]] bool is_foreign_image_suffix(std::string_view lower_case);

/// The accepted ones, for messages: ".jpg, .jpeg, .png, .webp".
[[nodiscard]] std::string image_suffixes_text();

}  // namespace yoke::feed
