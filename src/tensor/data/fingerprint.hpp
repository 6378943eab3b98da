#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace yoke::data {

/// 64-bit FNV-1a over 8 bytes at a time; `before` chains several pieces.
[[nodiscard]] inline std::uint64_t fingerprint_of(std::span<const std::int64_t> numbers,
                                                  std::uint64_t before = 0xCBF29CE484222325U) {
  for (const std::int64_t number : numbers) {
    before = (before ^ static_cast<std::uint64_t>(number)) * 0x100000001B3U;
    before ^= before >> 32;
  }
  return before;
}

}  // namespace yoke::data
