#include "tar_reader.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::uint64_t kMostText = 1U << 20;  // of a long name or a PAX header
using Block = std::array<std::byte, kBlock>;

std::string_view field(const Block& block, std::size_t at, std::size_t size) {
  const std::string_view whole(reinterpret_cast<const char*>(block.data()) + at, size);
  return whole.substr(0, whole.find('\0'));
}

std::uint64_t unsigned_byte(std::byte byte) { return std::to_integer<std::uint64_t>(byte); }

// Octal digits between spaces, or GNU's 255-and-up in binary; nothing if it is neither.
std::optional<std::uint64_t> number(const Block& block, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  if ((block[at] & std::byte{0x80}) != std::byte{0}) {
    for (std::size_t i = 1; i < size; ++i) {
      if (value >> 55 != 0) return std::nullopt;
      value = value << 8 | unsigned_byte(block[at + i]);
    }
    return value;
  }
  const std::string_view digits = core::trimmed(field(block, at, size));
  for (const char digit : digits) {
    if (digit < '0' || digit > '7') return std::nullopt;
    value = value << 3 | static_cast<std::uint64_t>(digit - '0');
  }
  return value;
}

// The sum of the bytes with the sum's own place as spaces.
bool sum_is_right(const Block& block) {
  constexpr std::size_t kAt = 148;
  constexpr std::size_t kSize = 8;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    sum += i >= kAt && i < kAt + kSize ? ' ' : unsigned_byte(block[i]);
  }
  return number(block, kAt, kSize) == sum;
}

bool is_zero(const Block& block) {
  return std::ranges::all_of(block, [](std::byte byte) { return byte == std::byte{0}; });
}

const char* packing_of(const Block& block) {
  constexpr std::array<unsigned char, 4> kZstd{0x28, 0xB5, 0x2F, 0xFD};
  if (block[0] == std::byte{0x1F} && block[1] == std::byte{0x8B}) return "gzip";
  if (std::memcmp(block.data(), kZstd.data(), kZstd.size()) == 0) return "zstd";
  return nullptr;
}

// prefix/name of ustar; GNU keeps other things in the prefix's place.
std::string name_in(const Block& block) {
  const std::string_view name = field(block, 0, 100);
  const bool posix = std::memcmp(block.data() + 257, "ustar", 6) == 0;
  const std::string_view prefix = posix ? field(block, 345, 155) : std::string_view{};
  return prefix.empty() ? std::string(name) : core::text(prefix, '/', name);
}

}  // namespace

struct TarReader::Header {
  std::uint64_t header = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  char type = '0';  // '\0' at the archive's end
  std::string name;
};

TarReader::TarReader(std::string name, std::uint64_t size, ReadAt read_at)
    : archive_(std::move(name)), size_(size), read_at_(std::move(read_at)) {}

void TarReader::fail(const std::string& what) const {
  throw Error(Code::corrupt_data, core::text("read ", archive_, ": ", what, " at byte ", at_));
}

void TarReader::fail_short(const std::string& what) const {
  throw Error(Code::corrupt_data,
              core::text("read ", archive_, ": ", what, " at byte ", at_, ": the file ends after ",
                         size_, " bytes"),
              "it was cut short, or its writer was not closed: fetch or write it again");
}

TarReader::Header TarReader::read_header() {
  Block block{};
  if (size_ == 0) fail_short("an empty file is no tar archive");
  if (read_at_(at_, block) < kBlock) fail_short("no end mark");
  if (is_zero(block)) return {.header = at_, .type = '\0', .name = {}};
  if (!sum_is_right(block)) {
    if (const char* packing = at_ == 0 ? packing_of(block) : nullptr) {
      throw Error(Code::unsupported,
                  core::text("read ", archive_, ": it is packed by ", packing,
                             ", and members of a packed archive cannot be reached one by one"),
                  "unpack the archive itself; the images inside are packed already");
    }
    fail("no tar header");
  }
  const auto size = number(block, 124, 12);
  if (!size || *size > std::numeric_limits<std::uint64_t>::max() / 4)
    fail("a header without a size");
  const char type = static_cast<char>(block[156]);
  return {.header = at_,
          .offset = at_ + kBlock,
          .size = *size,
          .type = type == '\0' ? '0' : type,
          .name = name_in(block)};
}

std::string TarReader::read_text(const Header& header) {
  if (header.size > kMostText) fail(core::text("a name of ", header.size, " bytes"));
  std::string text(header.size, '\0');
  const std::size_t count = read_at_(header.offset, std::as_writable_bytes(std::span(text)));
  if (count < text.size()) fail_short("half a name");
  return text;
}

// Lines of "LENGTH key=value\n", of which the length counts all.
void TarReader::read_pax(const Header& header) {
  const std::string text = read_text(header);
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t space = rest.find(' ');
    const auto length = core::parse_integer(rest.substr(0, space));
    if (space == std::string_view::npos || !length || *length <= static_cast<std::int64_t>(space) ||
        static_cast<std::size_t>(*length) > rest.size()) {
      fail("a PAX header with a wrong length");
    }
    const auto size = static_cast<std::size_t>(*length);
    const std::string_view line = rest.substr(space + 1, size - space - 2);
    if (line.starts_with("path=")) long_name_ = line.substr(5);
    if (line.starts_with("size=")) {
      const auto value = core::parse_integer(line.substr(5));
      if (!value || *value < 0) fail("a PAX header with a wrong size");
      pax_size_ = static_cast<std::uint64_t>(*value);
    }
    if (line.starts_with("GNU.sparse.")) {
      throw Error(Code::unsupported,
                  core::text("read ", archive_, ": a sparse member at byte ", at_),
                  "write the archive without --sparse");
    }
    rest.remove_prefix(size);
  }
}

std::optional<TarMember> TarReader::next() {
  while (true) {
    Header header = read_header();
    if (header.type == '\0') return std::nullopt;
    const bool describes_next =
        header.type == 'L' || header.type == 'K' || header.type == 'x' || header.type == 'g';
    if (!describes_next && pax_size_) header.size = *std::exchange(pax_size_, std::nullopt);
    if (header.size > size_ - std::min(size_, header.offset)) {
      cut_member_ = long_name_.empty() ? header.name : long_name_;
      fail_short(core::text("member \"", cut_member_, "\" of ", header.size, " bytes"));
    }
    if (header.type == 'S') fail("a sparse member");
    if (header.type == 'L') {
      long_name_ = read_text(header);
      long_name_.resize(long_name_.find('\0') == std::string::npos ? long_name_.size()
                                                                   : long_name_.find('\0'));
    }
    if (header.type == 'x') read_pax(header);
    at_ = header.offset + (header.size + kBlock - 1) / kBlock * kBlock;
    if (describes_next) continue;
    std::string name = std::exchange(long_name_, {});
    if (header.type != '0' && header.type != '7') continue;
    if (name.empty()) name = std::move(header.name);
    return TarMember{std::move(name), header.header, header.offset, header.size};
  }
}

}  // namespace yoke::feed
