#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace yoke::feed {

class Bytes;

/// Element types of the IDX format, by the byte that stands for them in a file.
enum class IdxType : std::uint8_t {
  u8 = 0x08,
  i8 = 0x09,
  i16 = 0x0B,
  i32 = 0x0C,
  f32 = 0x0D,
  f64 = 0x0E,
};

[[nodiscard]] std::string_view name(IdxType type) noexcept;
[[nodiscard]] std::size_t size_of(IdxType type) noexcept;

/// An array in an IDX file: MNIST's format. docs/feed.md has its layout.
///
///   const IdxFile labels = open_idx("train-labels-idx1-ubyte.gz");
///   const std::int64_t label = labels.integer(17);
///
/// Shapes: 1 to 8 dimensions, the first counts the items.
/// Owns: the mapping, or the elements where they had to be turned into this machine's byte order.
/// Moves only. Threads: any (immutable).
class IdxFile {
 public:
  IdxFile(std::filesystem::path path, IdxType type, std::vector<std::int64_t> dims, Bytes storage,
          std::span<const std::byte> elements);
  ~IdxFile();
  IdxFile(IdxFile&&) noexcept;
  IdxFile& operator=(IdxFile&&) noexcept;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] IdxType type() const noexcept { return type_; }
  [[nodiscard]] const std::vector<std::int64_t>& dims() const noexcept { return dims_; }
  [[nodiscard]] std::int64_t items() const noexcept { return dims_.front(); }

  /// All elements, in this machine's byte order.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return elements_; }

  /// Those of one item. Requires: 0 <= item < items().
  [[nodiscard]] std::span<const std::byte> item(std::int64_t item) const noexcept;

  /// The element at a flat position. Errors: invalid_argument for a type of fractions or a position
  /// outside.
  [[nodiscard]] std::int64_t integer(std::int64_t position) const;

 private:
  std::filesystem::path path_;
  IdxType type_;
  std::vector<std::int64_t> dims_;
  std::unique_ptr<Bytes> storage_;
  std::span<const std::byte> elements_;
  std::size_t item_bytes_;
};

/// Opens an IDX file, plain or packed by gzip, whatever its name says.
///
/// A plain file is mapped, not read. A packed one is unpacked once into core::cache_folder() and
/// mapped from there by every later process; where the cache cannot be written it is kept in
/// memory, and one warning says so.
///
/// Errors: not_found, io; corrupt_data with the path and the bytes expected and found for a header
///   that is not IDX's, a size that does not fit it, and broken gzip data.
/// Cost: packed and first: one pass, twice the unpacked size in memory for its duration. Else O(1)
///   for bytes, and one pass for elements of several bytes.
[[nodiscard]] IdxFile open_idx(const std::filesystem::path& path);

/// The same from memory; `name` is for messages.
[[nodiscard]] IdxFile parse_idx(std::vector<std::byte> bytes, std::filesystem::path name);

}  // namespace yoke::feed
