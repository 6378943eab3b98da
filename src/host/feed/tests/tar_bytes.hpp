#pragma once

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Tar archives made in the test.
namespace yoke::feed {

struct Member {
  std::string name;
  std::string bytes;
  char type = '0';
};

inline std::string tar_header(const Member& member) {
  std::string block(512, '\0');
  std::memcpy(block.data(), member.name.data(), std::min<std::size_t>(100, member.name.size()));
  std::memcpy(block.data() + 100, "0000644", 7);
  std::snprintf(block.data() + 124, 12, "%011zo", member.bytes.size());
  std::memcpy(block.data() + 148, "        ", 8);
  block[156] = member.type;
  std::memcpy(block.data() + 257,
              "ustar\0"
              "00",
              8);
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  std::snprintf(block.data() + 148, 8, "%06o", sum);
  return block;
}

/// Members without the end mark.
inline std::string tar_members(const std::vector<Member>& members) {
  std::string bytes;
  for (const Member& member : members) {
    bytes += tar_header(member) + member.bytes;
    bytes.resize((bytes.size() + 511) / 512 * 512, '\0');
  }
  return bytes;
}

inline std::string tar_bytes(const std::vector<Member>& members) {
  return tar_members(members) + std::string(1024, '\0');
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace yoke::feed
