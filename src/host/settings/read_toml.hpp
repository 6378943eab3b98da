#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "value.hpp"

namespace yoke::settings {

// One `key = value` line of a recipe or site file.
struct TomlEntry {
  std::string key;
  std::vector<Scalar> scalars;
  bool is_array = false;
  std::string shown;      // the value as written: for error texts
  std::string file_line;  // FILE:LINE
};

// The entries of the file after those of the files that it extends, so that a later entry overrides
// an earlier one. `what` ("recipe", "site") begins the error texts. Errors: invalid_argument for
// what is not TOML, a table, a key twice, a value of a strange kind, and `extends` in a circle;
//   not_found, io.
[[nodiscard]] std::vector<TomlEntry> read_toml(const std::filesystem::path& file,
                                               const std::string& what);

}  // namespace yoke::settings
