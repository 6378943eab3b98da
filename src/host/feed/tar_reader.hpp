#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace yoke::feed {

/// A regular file inside a tar archive.
struct TarMember {
  std::string name;
  std::uint64_t header = 0;  ///< where its header block begins
  std::uint64_t offset = 0;  ///< where its bytes begin
  std::uint64_t size = 0;
};

/// Fills the bytes from an offset on; returns how many there were.
using ReadAt = std::function<std::size_t(std::uint64_t offset, std::span<std::byte> out)>;

/// Walks the members of a tar archive: ustar, GNU's long names, PAX paths and sizes. Folders, links
/// and devices are passed over.
///
/// Errors: corrupt_data with the archive's name and the offset, for a header that is none and an
///   archive that ends before its end mark; unsupported for sparse members and packed archives.
class TarReader {
 public:
  TarReader(std::string name, std::uint64_t size, ReadAt read_at);

  /// Nothing at the end mark. A member that is not whole is an error, not a member.
  [[nodiscard]] std::optional<TarMember> next();

  /// After an error: the name of the member of which not all bytes are there; else empty.
  [[nodiscard]] const std::string& cut_member() const noexcept { return cut_member_; }

 private:
  struct Header;
  [[nodiscard]] Header read_header();
  [[nodiscard]] std::string read_text(const Header& header);
  void read_pax(const Header& header);
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail_short(const std::string& what) const;

  std::string archive_;
  std::uint64_t size_;
  ReadAt read_at_;
  std::uint64_t at_ = 0;
  std::string long_name_;  // for the next member
  std::string cut_member_;
  std::optional<std::uint64_t> pax_size_;
};

}  // namespace yoke::feed
