#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/stack/library.hpp"

namespace yoke::stack {
namespace {

using Bytes = std::span<const std::byte>;

// Note [Fat binaries]
// A section .nv_fatbin is a row of fat binaries, each aligned to 8 bytes:
//   header: u32 magic, u16 version, u16 size of the header, u64 bytes that follow it
//   then entries: u16 kind, u16 version, u32 size of this header, u64 size of its content, ...,
//   at byte 28: u32 architecture (90 of sm_90)
// The content may be compressed; the headers are not. This was found by reading libraries of torch
// 2.6, 2.9 and 2.11 and comparing with the published lists.
constexpr std::uint32_t kMagic = 0xba55ed50;
constexpr std::uint64_t kFatHeader = 16;
constexpr std::uint64_t kEntryHeader = 32;
constexpr std::uint16_t kPtx = 1;
constexpr std::uint16_t kMachineCode = 2;

template <class Number>
Number number(Bytes bytes, std::uint64_t offset) {
  Number out{};
  std::memcpy(&out, bytes.data() + offset, sizeof out);
  return out;
}

[[noreturn]] void damaged(const ElfFile& library, std::uint64_t offset) {
  throw Error(Code::corrupt_data, core::text("read ", library.name(), ": the fat binary at byte ",
                                             offset, " of its section is damaged"));
}

struct Counts {
  std::map<Arch, std::size_t> code;  // fat binaries that hold it
  std::size_t ptx = 0;
  std::size_t binaries = 0;
};

Arch arch_of(std::uint32_t number_of) {
  return {.major = static_cast<int>(number_of / 10), .minor = static_cast<int>(number_of % 10)};
}

void count_entries(const ElfFile& library, Bytes section, std::uint64_t begin, std::uint64_t end,
                   Counts& counts) {
  std::set<Arch> archs;
  bool ptx = false;
  for (std::uint64_t entry = begin; entry + kEntryHeader <= end;) {
    const auto kind = number<std::uint16_t>(section, entry);
    const std::uint64_t header = number<std::uint32_t>(section, entry + 4);
    const auto content = number<std::uint64_t>(section, entry + 8);
    const auto arch = number<std::uint32_t>(section, entry + 28);
    if (header < kEntryHeader || header > end - entry || content > end - entry - header)
      damaged(library, entry);
    if (kind == kMachineCode && arch >= 10 && arch < 1000) archs.insert(arch_of(arch));
    ptx = ptx || kind == kPtx;
    entry += header + content;
  }
  for (const Arch& arch : archs) ++counts.code[arch];
  counts.ptx += ptx ? 1 : 0;
  ++counts.binaries;
}

void count_section(const ElfFile& library, Bytes section, Counts& counts) {
  for (std::uint64_t at = 0; at + kFatHeader <= section.size();) {
    if (number<std::uint32_t>(section, at) != kMagic) {
      at += 8;  // padding
      continue;
    }
    const std::uint64_t header = number<std::uint16_t>(section, at + 6);
    const auto size = number<std::uint64_t>(section, at + 8);
    const std::uint64_t left = section.size() - at;
    if (header < kFatHeader || header > left || size > left - header) damaged(library, at);
    count_entries(library, section, at + header, at + header + size, counts);
    at += (header + size + 7) / 8 * 8;
  }
}

}  // namespace

CodeArchs code_archs(const ElfFile& library) {
  Counts counts;
  for (const char* name : {".nv_fatbin", "__nv_relfatbin"}) {
    if (const auto section = library.section(name)) count_section(library, *section, counts);
  }
  CodeArchs out{.binaries = counts.binaries};
  const auto nearly_all = [&](std::size_t count) { return count * 10 >= counts.binaries * 9; };
  for (const auto& [arch, count] : counts.code)
    (nearly_all(count) ? out.archs : out.partly).push_back(arch);
  out.ptx = counts.binaries > 0 && nearly_all(counts.ptx);
  return out;
}

}  // namespace yoke::stack
