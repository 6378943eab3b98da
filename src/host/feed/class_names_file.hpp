#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace yoke::feed {

/// The lines of `folder`/classes.txt, which `yoke data pack` writes; none where there is no such
/// file. Errors: invalid_argument where there are fewer names than classes, with both numbers.
[[nodiscard]] std::vector<std::string> class_names_in(const std::filesystem::path& folder,
                                                      std::int64_t num_classes);

}  // namespace yoke::feed
