#include "source.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "yoke/core/text.hpp"

namespace yoke::archive {
namespace {

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string hint_from_start(std::span<const std::byte> bytes) {
  const std::string_view start = as_text(bytes.first(std::min<std::size_t>(bytes.size(), 512)));
  const std::string_view words = core::trimmed(start);
  if (bytes.empty())
    return "the file is empty: the disk may have been full; take an earlier checkpoint";
  if (words.starts_with("<"))
    return "it begins like a web page: the download gave a page instead of the file; download it "
           "again";
  if (words.starts_with("version https://git-lfs"))
    return "it is a Git LFS pointer: run `git lfs pull`";
  if (start.size() > 8 && start[8] == '{')
    return "it begins like a safetensors file: name it .safetensors";
  if (start.starts_with("PK"))
    return "it begins like a PyTorch file: if it is named .safetensors, name it .pt; else copy it "
           "again or take an earlier checkpoint";
  return "copy it again or take an earlier checkpoint";
}

}  // namespace

Error corrupt(const Source& source, const std::string& what) {
  return Error(Code::corrupt_data,
               core::text("load ", source.name, ": corrupt or truncated checkpoint of ",
                          source.bytes.size(), " B: ", what),
               hint_from_start(source.bytes));
}

Error unsupported(const Source& source, const std::string& what, std::string hint) {
  return Error(Code::unsupported, core::text("load ", source.name, ": ", what), std::move(hint));
}

Kept keep(const Source& source, std::span<const std::byte> bytes, std::size_t alignment) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment == 0;
  if (source.owner != nullptr && aligned) return {bytes, source.owner};
  // operator new's alignment suits every dtype.
  auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  return {*copy, copy};
}

bool is_utf8(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t i = 0;
  while (i < text.size()) {
    const unsigned char lead = byte(i);
    const std::size_t length = lead < 0x80       ? 1
                               : lead >> 5 == 6  ? 2
                               : lead >> 4 == 14 ? 3
                               : lead >> 3 == 30 ? 4
                                                 : 0;
    if (length == 0 || text.size() - i < length) return false;
    std::uint32_t code = length == 1 ? lead : lead & (0x7FU >> length);
    for (std::size_t k = 1; k < length; ++k) {
      if (byte(i + k) >> 6 != 2) return false;
      code = code << 6 | (byte(i + k) & 0x3FU);
    }
    // The least code of each length, so that no character has two spellings; no surrogates.
    constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kLeast[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
      return false;
    i += length;
  }
  return true;
}

}  // namespace yoke::archive
