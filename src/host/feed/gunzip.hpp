#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace yoke::feed {

/// Whether the bytes begin as gzip data does.
[[nodiscard]] bool is_gzip(std::span<const std::byte> bytes) noexcept;

/// Unpacks gzip data piece by piece; its check sums and sizes are compared on the way. Several
/// members in one file follow each other, as gzip itself has it.
///
/// Borrows the packed bytes. `path` is for messages.
/// Errors: corrupt_data with the path, how far it came, and what zlib says.
class Gunzip {
 public:
  Gunzip(std::span<const std::byte> packed, std::filesystem::path path);
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  /// Fills `out` from its start; returns how much came, less than asked for only at the end of the
  /// data.
  std::size_t read(std::span<std::byte> out);

  /// The most that `packed_bytes` of gzip data can hold: deflate packs 258 bytes into 2 bits at
  /// best.
  [[nodiscard]] static std::uint64_t most_unpacked(std::uint64_t packed_bytes) noexcept {
    return packed_bytes * 1032;
  }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace yoke::feed
