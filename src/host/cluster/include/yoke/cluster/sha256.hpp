#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace yoke::cluster {

using Digest = std::array<std::uint8_t, 32>;

/// FIPS 180-4.
[[nodiscard]] Digest sha256(std::string_view bytes);

/// RFC 2104 over SHA-256.
[[nodiscard]] Digest hmac_sha256(std::string_view key, std::string_view bytes);

[[nodiscard]] std::string hex(const Digest& digest);

/// Compares in a time that does not tell where two texts differ.
[[nodiscard]] bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept;

}  // namespace yoke::cluster
