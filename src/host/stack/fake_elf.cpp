#include "yoke/stack/fake_elf.hpp"

#include <cstring>
#include <string_view>
#include <utility>

namespace yoke::stack {
namespace {

template <class Number>
void append(std::string& out, Number number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void align(std::string& out, std::size_t to) { out.append((to - out.size() % to) % to, '\0'); }

/// A table of names, each once behind its predecessor.
class Names {
 public:
  std::uint32_t add(std::string_view name) {
    const auto offset = static_cast<std::uint32_t>(bytes_.size());
    bytes_.append(name).push_back('\0');
    return offset;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_ = std::string(1, '\0');
};

std::string dynamic_section(const FakeElf& library, Names& names) {
  std::string out;
  const auto entry = [&](std::int64_t tag, const std::string& value) {
    append(out, tag);
    append(out, std::uint64_t{names.add(value)});
  };
  for (const std::string& needed : library.needed) entry(1, needed);
  if (!library.soname.empty()) entry(14, library.soname);
  if (!library.rpath.empty()) entry(15, library.rpath);
  if (!library.runpath.empty()) entry(29, library.runpath);
  return out.append(16, '\0');
}

std::string symbol_section(const FakeElf& library, Names& names) {
  std::string out(24, '\0');
  for (const std::string& symbol : library.symbols) {
    append(out, names.add(symbol));
    append(out, std::uint16_t{0x12});  // a global function
    append(out, std::uint16_t{1});     // of section 1: defined
    out.append(16, '\0');
  }
  return out;
}

std::string needed_section(const FakeElf& library, Names& names) {
  std::string out;
  for (std::size_t i = 0; i < library.needed_versions.size(); ++i) {
    const bool last = i + 1 == library.needed_versions.size();
    append(out, std::uint16_t{1});
    append(out, std::uint16_t{1});
    append(out, names.add(library.needed_versions[i].library));
    append(out, std::uint32_t{16});
    append(out, std::uint32_t{last ? 0U : 32U});
    append(out, std::uint64_t{0});
    append(out, names.add(library.needed_versions[i].version));
    append(out, std::uint32_t{0});
  }
  return out;
}

std::string defined_section(const FakeElf& library, Names& names) {
  std::string out;
  for (std::size_t i = 0; i < library.defined_versions.size(); ++i) {
    const bool last = i + 1 == library.defined_versions.size();
    append(out, std::uint64_t{0x0001'0000'0000'0001});
    append(out, std::uint32_t{0});
    append(out, std::uint32_t{20});
    append(out, std::uint32_t{last ? 0U : 28U});
    append(out, names.add(library.defined_versions[i]));
    append(out, std::uint32_t{0});
  }
  return out;
}

void append_fat_entry(std::string& out, std::uint16_t kind, const Arch& arch) {
  constexpr std::uint32_t kHeader = 64;
  constexpr std::uint64_t kContent = 16;
  append(out, kind);
  append(out, std::uint16_t{0x101});
  append(out, kHeader);
  append(out, kContent);
  out.append(12, '\0');
  append(out, static_cast<std::uint32_t>(arch.major * 10 + arch.minor));
  out.append(kHeader - 32 + kContent, '\0');
}

std::string fat_section(const FakeElf& library) {
  std::string out;
  for (const FakeFatBinary& binary : library.fat_binaries) {
    std::string entries;
    for (const Arch& arch : binary.code) append_fat_entry(entries, 2, arch);
    if (binary.ptx && !binary.code.empty()) append_fat_entry(entries, 1, binary.code.back());
    append(out, std::uint32_t{0xba55ed50});
    append(out, std::uint16_t{1});
    append(out, std::uint16_t{16});
    append(out, std::uint64_t{entries.size()});
    out += entries;
    align(out, 8);
  }
  return out;
}

std::string note_section(const FakeElf& library) {
  std::string out;
  append(out, std::uint32_t{5});
  append(out, static_cast<std::uint32_t>(library.note.size()));
  append(out, std::uint32_t{1});
  out.append("yoke").append(4, '\0').append(library.note);
  align(out, 4);
  return out;
}

struct Section {
  std::string name;
  std::uint32_t type;
  std::uint32_t link;
  std::string bytes;
};

std::string section_headers(const std::vector<Section>& sections,
                            const std::vector<std::uint64_t>& offsets, Names& names) {
  std::string out(64, '\0');
  for (std::size_t i = 0; i < sections.size(); ++i) {
    append(out, names.add(sections[i].name));
    append(out, sections[i].type);
    out.append(16, '\0');
    append(out, offsets[i]);
    append(out, std::uint64_t{sections[i].bytes.size()});
    append(out, sections[i].link);
    out.append(20, '\0');
  }
  return out;
}

std::string file_header(std::uint64_t headers_at, std::size_t sections) {
  std::string out(
      "\x7f"
      "ELF\x02\x01\x01",
      7);
  out.append(9, '\0');
  append(out, std::uint16_t{3});   // a shared object
  append(out, std::uint16_t{62});  // for x86-64
  append(out, std::uint32_t{1});
  out.append(16, '\0');
  append(out, headers_at);
  append(out, std::uint32_t{0});
  append(out, std::uint16_t{64});
  out.append(4, '\0');
  append(out, std::uint16_t{64});
  append(out, static_cast<std::uint16_t>(sections));
  append(out, static_cast<std::uint16_t>(sections - 1));
  return out;
}

}  // namespace

std::string fake_elf(const FakeElf& library) {
  Names names;
  std::vector<Section> sections;
  constexpr std::uint32_t kNames = 1;  // the section that all others point to
  sections.push_back({".dynstr", 3, 0, ""});
  sections.push_back({".dynamic", 6, kNames, dynamic_section(library, names)});
  sections.push_back({".dynsym", 11, kNames, symbol_section(library, names)});
  if (!library.needed_versions.empty())
    sections.push_back({".gnu.version_r", 0x6ffffffe, kNames, needed_section(library, names)});
  if (!library.defined_versions.empty())
    sections.push_back({".gnu.version_d", 0x6ffffffd, kNames, defined_section(library, names)});
  if (!library.fat_binaries.empty()) sections.push_back({".nv_fatbin", 1, 0, fat_section(library)});
  if (!library.data.empty()) sections.push_back({".rodata", 1, 0, library.data});
  if (!library.note.empty()) sections.push_back({".note.yoke", 7, 0, note_section(library)});
  sections.front().bytes = names.bytes();
  Names section_names;
  std::string body(64, '\0');
  std::vector<std::uint64_t> offsets;
  for (const Section& section : sections) {
    align(body, 8);
    offsets.push_back(body.size());
    body += section.bytes;
  }
  // The names of the sections come last, and hold their own.
  sections.push_back({".shstrtab", 3, 0, ""});
  align(body, 8);
  offsets.push_back(body.size());
  Names sized;
  for (const Section& section : sections) sized.add(section.name);
  sections.back().bytes = sized.bytes();
  body += sections.back().bytes;
  align(body, 8);
  const std::uint64_t headers_at = body.size();
  body += section_headers(sections, offsets, section_names);
  const std::string header = file_header(headers_at, sections.size() + 1);
  return body.replace(0, header.size(), header);
}

}  // namespace yoke::stack
