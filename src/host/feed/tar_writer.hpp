#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "yoke/core/files.hpp"

namespace yoke::feed {

/// Writes a ustar archive that appears under its name when it is whole. Equal members give equal
/// bytes: no times, no owners.
///
/// Errors: io as of core::AtomicFile; invalid_argument for a name of more than 100 bytes.
class TarWriter {
 public:
  explicit TarWriter(const std::filesystem::path& path) : file_(path) {}

  void add(std::string_view name, std::span<const std::byte> bytes);
  void finish();

 private:
  void pad();

  core::AtomicFile file_;
};

}  // namespace yoke::feed
