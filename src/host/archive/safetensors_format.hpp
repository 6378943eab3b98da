#pragma once

#include <cstddef>
#include <cstdint>

namespace yoke::archive::safetensors {

inline constexpr std::size_t kLengthBytes = 8;
inline constexpr std::uint64_t kMostHeaderBytes =
    100'000'000;  ///< the bound of the format's own reader
inline constexpr const char* kMetadata = "__metadata__";

}  // namespace yoke::archive::safetensors
