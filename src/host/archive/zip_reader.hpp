#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "source.hpp"

namespace yoke::archive {

/// Finds the records of a zip in memory, with 64-bit sizes. Nothing is copied.
///
/// Errors: corrupt_data for whatever does not fit together; from record() also unsupported for a
///   compressed or encrypted one. Borrows the source.
class ZipReader {
 public:
  explicit ZipReader(const Source& source);

  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] const std::string& first_name() const noexcept { return first_name_; }

  /// The record's bytes, which must be stored as they are, after their CRC-32 was compared, unless
  /// the file was written without any (all zero:
  /// `torch.utils.serialization.config.save.compute_crc32 = False`).
  [[nodiscard]] std::span<const std::byte> record(std::string_view name) const;

 private:
  struct Directory {
    std::uint64_t at = 0;
    std::uint64_t bytes = 0;
    std::uint64_t count = 0;
  };
  struct Record {
    std::span<const std::byte> bytes;
    std::uint64_t size = 0;  // unpacked
    std::uint32_t crc = 0;
    std::uint16_t method = 0;
    std::uint16_t flags = 0;
  };
  struct Header;

  [[nodiscard]] Directory find_directory() const;
  [[nodiscard]] std::size_t find_end() const;
  void read_directory(const Directory& directory);
  [[nodiscard]] std::span<const std::byte> locate(const Header& header, std::string_view name,
                                                  std::uint64_t limit) const;

  const Source& source_;
  std::map<std::string, Record, std::less<>> records_;
  std::string first_name_;
  bool has_checksums_ = false;
};

}  // namespace yoke::archive
