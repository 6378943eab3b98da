#pragma once

#include <cstdint>
#include <string_view>

namespace yoke::feed {

/// FNV-1a of 64 bits: tells lists of names apart, guards nothing.
class Fingerprint {
 public:
  void add(std::string_view text) noexcept {
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
    add_byte(0xFF);  // ends a text: no name has it in the middle of another's start
  }
  void add(std::uint64_t number) noexcept {
    for (int shift = 0; shift < 64; shift += 8) {
      add_byte(static_cast<unsigned char>(number >> shift & 0xFF));
    }
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }

 private:
  void add_byte(unsigned char byte) noexcept { value_ = (value_ ^ byte) * 0x100000001B3U; }

  std::uint64_t value_ = 0xCBF29CE484222325U;
};

}  // namespace yoke::feed
