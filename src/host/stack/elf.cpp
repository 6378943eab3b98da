#include "yoke/stack/elf.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::stack {
namespace {

using core::text;
using Bytes = std::span<const std::byte>;

// The numbers of the ELF specification that are needed here, for 64 bits and little-endian order.
constexpr std::uint64_t kHeaderSize = 64;
constexpr std::uint64_t kSectionSize = 64;
constexpr std::uint64_t kSymbolSize = 24;
constexpr std::uint64_t kDynamicSize = 16;
constexpr std::uint32_t kDynamicSection = 6;
constexpr std::uint32_t kNoteSection = 7;
constexpr std::uint32_t kEmptySection = 8;  // takes no bytes of the file
constexpr std::uint32_t kSymbolSection = 11;
constexpr std::uint32_t kDefinedVersions = 0x6ffffffd;
constexpr std::uint32_t kNeededVersions = 0x6ffffffe;
enum : std::int64_t { kNeeded = 1, kSoname = 14, kRpath = 15, kRunpath = 29 };

class Mapping {
 public:
  explicit Mapping(const std::filesystem::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) fail(path, errno == ENOENT ? Code::not_found : Code::io);
    struct stat status{};
    const bool readable = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    size_ = readable ? static_cast<std::size_t>(status.st_size) : 0;
    data_ = size_ == 0 ? nullptr : ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    const bool mapped = data_ != MAP_FAILED;
    if (!mapped) data_ = nullptr;
    ::close(descriptor);
    if (!readable || !mapped) fail(path, Code::io);
    // Of a file of gigabytes some hundred places are read; reading ahead would read it all.
    if (data_ != nullptr) ::madvise(data_, size_, MADV_RANDOM);
  }
  ~Mapping() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] Bytes bytes() const { return {static_cast<const std::byte*>(data_), size_}; }

 private:
  [[noreturn]] static void fail(const std::filesystem::path& path, Code code) {
    throw Error(code, text("read ", path.string(), ": ", std::strerror(errno)));
  }

  void* data_ = nullptr;
  std::size_t size_ = 0;
};

std::vector<std::string> folders(std::string_view list) {
  std::vector<std::string> out;
  for (std::string& folder : core::split(list, ':')) {
    if (!folder.empty()) out.push_back(std::move(folder));
  }
  return out;
}

std::uint64_t padded(std::uint64_t size) { return (size + 3) / 4 * 4; }

}  // namespace

ElfFile ElfFile::open(const std::filesystem::path& path) {
  auto mapping = std::make_shared<Mapping>(path);
  const Bytes bytes = mapping->bytes();
  return {std::move(mapping), bytes, path.string()};
}

ElfFile ElfFile::parse(Bytes bytes, std::string name) { return {nullptr, bytes, std::move(name)}; }

ElfFile::ElfFile(std::shared_ptr<const void> owner, Bytes bytes, std::string name)
    : owner_(std::move(owner)), bytes_(bytes), name_(std::move(name)) {
  constexpr std::string_view kMagic =
      "\x7f"
      "ELF";
  if (bytes_.size() < kHeaderSize || std::memcmp(bytes_.data(), kMagic.data(), kMagic.size()) != 0)
    damaged("not an ELF file");
  if (bytes_[4] != std::byte{2} || bytes_[5] != std::byte{1})
    throw Error(Code::unsupported, text("read ", name_, ": not 64 bits in little-endian order"));
  machine_ = number<std::uint16_t>(bytes_, 18);
  read_sections();
  read_dynamic();
}

void ElfFile::damaged(const std::string& what) const {
  throw Error(Code::corrupt_data, text("read ", name_, ": ", what));
}

Bytes ElfFile::at(std::uint64_t offset, std::uint64_t count) const {
  if (offset > bytes_.size() || count > bytes_.size() - offset)
    damaged(text("byte ", offset, " and ", count, " from there are not in the file"));
  return bytes_.subspan(offset, count);
}

template <class Number>
Number ElfFile::number(Bytes bytes, std::uint64_t offset) const {
  if (offset > bytes.size() || sizeof(Number) > bytes.size() - offset)
    damaged(text("byte ", offset, " is not in its table"));
  Number out{};
  std::memcpy(&out, bytes.data() + offset, sizeof out);
  return out;
}

void ElfFile::read_sections() {
  const auto offset = number<std::uint64_t>(bytes_, 40);
  const auto entry_size = number<std::uint16_t>(bytes_, 58);
  const auto count = number<std::uint16_t>(bytes_, 60);
  const auto names_index = number<std::uint16_t>(bytes_, 62);
  if (count == 0) return;
  if (entry_size != kSectionSize) damaged(text("section headers of ", entry_size, " bytes"));
  const Bytes table = at(offset, std::uint64_t{count} * kSectionSize);
  std::vector<std::uint32_t> names;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Bytes header = table.subspan(i * kSectionSize, kSectionSize);
    Section section{.type = number<std::uint32_t>(header, 4),
                    .link = number<std::uint32_t>(header, 40)};
    if (section.type != 0 && section.type != kEmptySection)
      section.bytes = at(number<std::uint64_t>(header, 24), number<std::uint64_t>(header, 32));
    names.push_back(number<std::uint32_t>(header, 0));
    sections_.push_back(section);
  }
  if (names_index >= sections_.size()) damaged("its table of section names is missing");
  for (std::size_t i = 0; i < sections_.size(); ++i)
    sections_[i].name = text_of(sections_[names_index], names[i]);
}

std::string_view ElfFile::text_of(const Section& table, std::uint64_t offset) const {
  if (offset >= table.bytes.size()) damaged(text("name ", offset, " is not in its table"));
  const auto* begin = reinterpret_cast<const char*>(table.bytes.data()) + offset;
  const auto* end = static_cast<const char*>(std::memchr(begin, 0, table.bytes.size() - offset));
  if (end == nullptr) damaged(text("name ", offset, " does not end"));
  return {begin, static_cast<std::size_t>(end - begin)};
}

const ElfFile::Section* ElfFile::find(std::uint32_t type) const {
  const auto found = std::find_if(sections_.begin(), sections_.end(),
                                  [&](const Section& section) { return section.type == type; });
  return found == sections_.end() ? nullptr : &*found;
}

const ElfFile::Section& ElfFile::linked(const Section& section) const {
  if (section.link >= sections_.size()) damaged("a table of names is missing");
  return sections_[section.link];
}

void ElfFile::read_dynamic() {
  const Section* dynamic = find(kDynamicSection);
  if (dynamic == nullptr) return;
  const Section& names = linked(*dynamic);
  for (std::uint64_t i = 0; i + kDynamicSize <= dynamic->bytes.size(); i += kDynamicSize) {
    const auto tag = number<std::int64_t>(dynamic->bytes, i);
    if (tag == 0) return;
    if (tag != kNeeded && tag != kSoname && tag != kRpath && tag != kRunpath) continue;
    const std::string_view value = text_of(names, number<std::uint64_t>(dynamic->bytes, i + 8));
    if (tag == kNeeded) needed_.emplace_back(value);
    if (tag == kSoname) soname_ = std::string(value);
    if (tag == kRpath) rpath_ = folders(value);
    if (tag == kRunpath) runpath_ = folders(value);
  }
}

std::optional<Bytes> ElfFile::section(std::string_view name) const {
  const auto found = std::find_if(sections_.begin(), sections_.end(),
                                  [&](const Section& section) { return section.name == name; });
  return found == sections_.end() ? std::nullopt : std::optional(found->bytes);
}

void ElfFile::symbols(const std::function<bool(std::string_view, bool)>& visit) const {
  const Section* table = find(kSymbolSection);
  if (table == nullptr) return;
  const Section& names = linked(*table);
  for (std::uint64_t i = 0; i + kSymbolSize <= table->bytes.size(); i += kSymbolSize) {
    const std::string_view symbol = text_of(names, number<std::uint32_t>(table->bytes, i));
    const bool defined = number<std::uint16_t>(table->bytes, i + 6) != 0;
    if (!symbol.empty() && !visit(symbol, defined)) return;
  }
}

std::vector<NeededVersion> ElfFile::needed_versions() const {
  std::vector<NeededVersion> out;
  const Section* table = find(kNeededVersions);
  if (table == nullptr) return out;
  const Section& names = linked(*table);
  // Each step goes forward, so that a file cannot make this run for ever.
  for (std::uint64_t file = 0;;) {
    const auto count = number<std::uint16_t>(table->bytes, file + 2);
    const std::string library(text_of(names, number<std::uint32_t>(table->bytes, file + 4)));
    std::uint64_t item = file + number<std::uint32_t>(table->bytes, file + 8);
    for (std::uint16_t i = 0; i < count; ++i) {
      const std::string_view version =
          text_of(names, number<std::uint32_t>(table->bytes, item + 8));
      out.push_back({.library = library, .version = std::string(version)});
      const auto next = number<std::uint32_t>(table->bytes, item + 12);
      if (next == 0) break;
      item += next;
    }
    const auto next = number<std::uint32_t>(table->bytes, file + 12);
    if (next == 0) return out;
    file += next;
  }
}

std::vector<std::string> ElfFile::defined_versions() const {
  std::vector<std::string> out;
  const Section* table = find(kDefinedVersions);
  if (table == nullptr) return out;
  const Section& names = linked(*table);
  for (std::uint64_t item = 0;;) {
    const std::uint64_t first = item + number<std::uint32_t>(table->bytes, item + 12);
    out.emplace_back(text_of(names, number<std::uint32_t>(table->bytes, first)));
    const auto next = number<std::uint32_t>(table->bytes, item + 16);
    if (next == 0) return out;
    item += next;
  }
}

std::vector<ElfNote> ElfFile::notes() const {
  std::vector<ElfNote> out;
  for (const Section& section : sections_) {
    if (section.type != kNoteSection) continue;
    for (std::uint64_t at_byte = 0; at_byte + 12 <= section.bytes.size();) {
      const std::uint64_t name_size = number<std::uint32_t>(section.bytes, at_byte);
      const std::uint64_t size = number<std::uint32_t>(section.bytes, at_byte + 4);
      const auto type = number<std::uint32_t>(section.bytes, at_byte + 8);
      const std::uint64_t body = at_byte + 12 + padded(name_size);
      if (body > section.bytes.size() || size > section.bytes.size() - body)
        damaged("a note is longer than its section");
      const auto* owner = reinterpret_cast<const char*>(section.bytes.data()) + at_byte + 12;
      out.push_back({.section = std::string(section.name),
                     .owner = std::string(owner, name_size == 0 ? 0 : name_size - 1),
                     .type = type,
                     .bytes = section.bytes.subspan(body, size)});
      at_byte = body + padded(size);
    }
  }
  return out;
}

}  // namespace yoke::stack
