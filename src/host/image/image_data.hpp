#pragma once

#include <iterator>
#include <span>
#include <string_view>

namespace yoke::image {

// Files that are part of the program, so that it needs none beside it.
extern const std::string_view kPartsText;    // stack/image.json
extern const std::string_view kEntryText;    // files/entry.sh
extern const std::string_view kInstallText;  // files/install_wheels.sh
extern const std::string_view kGuardText;    // files/guard.py
extern const std::string_view kProfileText;  // files/profile.sh
extern const std::string_view kNvccText;     // files/nvcc.sh
extern const std::string_view kNoticeText;   // files/notice.txt

struct LockText {
  std::string_view name;  // image-2.9.1-cu128-py3.11
  std::string_view text;
};
[[nodiscard]] std::span<const LockText> lock_texts() noexcept;

}  // namespace yoke::image
