#include "class_names_file.hpp"

#include <cstdint>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {

std::vector<std::string> class_names_in(const std::filesystem::path& folder,
                                        std::int64_t num_classes) {
  const std::filesystem::path path = folder / "classes.txt";
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return {};
  std::vector<std::string> names = core::split(core::trimmed(core::read_file(path)), '\n');
  if (static_cast<std::int64_t>(names.size()) >= num_classes) return names;
  throw Error(Code::invalid_argument,
              core::text("read ", path.string(), ": ", names.size(), " names for ", num_classes,
                         " classes"),
              "it belongs to other data: name all classes, or remove it");
}

}  // namespace yoke::feed
