#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace yoke::archive::zip {

// Numbers of the zip format ("APPNOTE"); fields are little-endian.
inline constexpr std::uint32_t kLocalHeader = 0x0403'4B50;
inline constexpr std::uint32_t kDataDescriptor = 0x0807'4B50;
inline constexpr std::uint32_t kCentralHeader = 0x0201'4B50;
inline constexpr std::uint32_t kEnd = 0x0605'4B50;
inline constexpr std::uint32_t kEnd64 = 0x0606'4B50;
inline constexpr std::uint32_t kEnd64Locator = 0x0706'4B50;

inline constexpr std::size_t kLocalHeaderBytes = 30;
inline constexpr std::size_t kCentralHeaderBytes = 46;
inline constexpr std::size_t kEndBytes = 22;
inline constexpr std::size_t kEnd64Bytes = 56;
inline constexpr std::size_t kEnd64LocatorBytes = 20;

inline constexpr std::uint16_t kExtra64 = 0x0001;  ///< the extra field with 64-bit sizes and offset
inline constexpr std::uint16_t kExtraPadding = 0x4246;  ///< "FB", PyTorch's padding
inline constexpr std::uint16_t kEncrypted = 0x0001;     ///< flag
inline constexpr std::uint16_t kDescriptorFollows = 0x0008;
inline constexpr std::uint16_t kNamesAreUtf8 = 0x0800;
inline constexpr std::uint32_t kIn64 = 0xFFFF'FFFF;  ///< "the number stands in the 64-bit field"
inline constexpr std::uint16_t kCountIn64 = 0xFFFF;

/// Appends the numbers in little-endian, each as wide as its type.
template <class... Numbers>
void put(std::string& out, Numbers... numbers) {
  const auto one = [&out](auto number) {
    static_assert(std::is_unsigned_v<decltype(number)>);
    auto rest = static_cast<std::uint64_t>(number);
    for (std::size_t i = 0; i < sizeof(number); ++i, rest >>= 8)
      out += static_cast<char>(rest & 0xFF);
  };
  (one(numbers), ...);
}

}  // namespace yoke::archive::zip
