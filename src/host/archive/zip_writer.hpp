#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/core/files.hpp"

namespace yoke::archive {

struct ZipWriterOptions {
  std::size_t alignment = 64;  ///< of each record's bytes in the file
  std::uint64_t zip64_from =
      0xFFFF'FFFF;  ///< sizes and offsets from here on take 64-bit fields; tests lower it
};

/// Writes the zip that PyTorch's readers expect: records stored as they are, under one folder,
/// their bytes aligned by an extra field "FB", sizes and CRC-32 in a data descriptor behind each
/// record. One pass; keeps a line per record.
///
///   ZipWriter zip(file, "archive");
///   zip.add("byteorder", "little");
///   zip.begin("data/0", bytes.size());
///   zip.append(bytes);
///   zip.end();
///   zip.finish();
class ZipWriter {
 public:
  ZipWriter(core::AtomicFile& file, std::string folder, ZipWriterOptions options = {});

  /// A record of `size` bytes, which append() brings in as many calls as suit the caller.
  void begin(std::string_view name, std::uint64_t size);
  void append(std::span<const std::byte> bytes);
  void end();

  /// A whole record.
  void add(std::string_view name, std::string_view bytes);

  /// 40 digits that depend on the names and contents of all records so far.
  [[nodiscard]] std::string digest() const;

  /// The central directory; nothing can be added after it. Does not commit the file.
  void finish();

 private:
  struct Entry {
    std::string name;
    std::uint64_t header_at = 0;
    std::uint64_t size = 0;
    std::uint32_t crc = 0;
  };

  [[nodiscard]] bool is_long(std::uint64_t number) const noexcept {
    return number >= options_.zip64_from;
  }
  [[nodiscard]] std::string central_header(const Entry& entry) const;

  core::AtomicFile& file_;
  std::string folder_;
  ZipWriterOptions options_;
  std::vector<Entry> entries_;
  std::uint64_t missing_ = 0;  ///< bytes of the record begun that append() has still to bring
};

}  // namespace yoke::archive
