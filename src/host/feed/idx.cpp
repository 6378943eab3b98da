#include "yoke/feed/idx.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "bytes.hpp"
#include "gunzip.hpp"
#include "unpacked_cache.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

namespace fs = std::filesystem;
using ByteView = std::span<const std::byte>;

constexpr std::size_t kMostDims = 8;
constexpr std::size_t kMostHeaderBytes = 4 + 4 * kMostDims;

struct TypeFacts {
  IdxType type;
  std::string_view name;
  std::size_t size;
};

constexpr std::array<TypeFacts, 6> kTypes{{
    {IdxType::u8, "u8", 1},
    {IdxType::i8, "i8", 1},
    {IdxType::i16, "i16", 2},
    {IdxType::i32, "i32", 4},
    {IdxType::f32, "f32", 4},
    {IdxType::f64, "f64", 8},
}};

const TypeFacts* facts_of(std::byte code) noexcept {
  for (const TypeFacts& facts : kTypes) {
    if (static_cast<std::byte>(facts.type) == code) return &facts;
  }
  return nullptr;
}

struct Header {
  IdxType type;
  std::vector<std::int64_t> dims;
  std::size_t header_bytes;
  std::uint64_t total_bytes;  // of the whole unpacked file
};

[[noreturn]] void fail(const fs::path& path, const std::string& what, std::string hint = {}) {
  throw Error(Code::corrupt_data, core::text("open ", path.string(), ": ", what), std::move(hint));
}

std::int64_t big_endian_32(ByteView bytes) {
  std::int64_t value = 0;
  for (const std::byte byte : bytes.first(4)) value = value << 8 | std::to_integer<int>(byte);
  return value;
}

std::string dims_text(const std::vector<std::int64_t>& dims) {
  std::vector<std::string> parts;
  for (const std::int64_t dim : dims) parts.push_back(std::to_string(dim));
  return core::joined(parts, " x ");
}

std::uint64_t total_bytes(const Header& header, std::size_t element_size, const fs::path& path) {
  std::uint64_t bytes = element_size;
  for (const std::int64_t dim : header.dims) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dim), &bytes)) {
      fail(path, core::text("its header announces ", dims_text(header.dims),
                            " elements, more than a file can hold"));
    }
  }
  if (__builtin_add_overflow(bytes, header.header_bytes, &bytes) ||
      bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    fail(path, core::text("its header announces ", dims_text(header.dims),
                          " elements, more than a file can hold"));
  }
  return bytes;
}

// `start` holds the file's first bytes: all of a header, unless the file itself is shorter.
Header parse_header(ByteView start, const fs::path& path) {
  if (start.size() < 4) {
    fail(path, core::text(start.empty() ? "the file is empty: " : "",
                          "an IDX header has at least 8 bytes, found ", start.size()));
  }
  const TypeFacts* facts = facts_of(start[2]);
  const auto rank = std::to_integer<std::size_t>(start[3]);
  if (start[0] != std::byte{0} || start[1] != std::byte{0} || facts == nullptr) {
    fail(path,
         core::text("not an IDX file: it begins with the number ", big_endian_32(start),
                    ", an image file of bytes with 2051, a label file with 2049"),
         "check that this is the file you mean");
  }
  if (rank < 1 || rank > kMostDims) {
    fail(path, core::text("its header announces ", rank, " dimensions (1 to ", kMostDims, ")"));
  }
  Header header{facts->type, {}, 4 + 4 * rank, 0};
  if (start.size() < header.header_bytes) {
    fail(path, core::text("its header of ", rank, " dimensions has ", header.header_bytes,
                          " bytes, found ", start.size()));
  }
  for (std::size_t i = 0; i < rank; ++i)
    header.dims.push_back(big_endian_32(start.subspan(4 + 4 * i)));
  header.total_bytes = total_bytes(header, facts->size, path);
  return header;
}

void check_size(const Header& header, std::uint64_t found, const fs::path& path) {
  if (found == header.total_bytes) return;
  const std::string what =
      core::text("expected ", header.total_bytes, " bytes for ", dims_text(header.dims), " ",
                 name(header.type), ", found ", found);
  if (found < header.total_bytes) fail(path, what, "the file was cut short: fetch it again");
  fail(path, what + core::text(" (", found - header.total_bytes, " trailing bytes)"),
       "the header and the data do not belong together");
}

std::vector<std::byte> unpack(ByteView packed, const fs::path& path) {
  Gunzip gunzip(packed, path);
  std::array<std::byte, kMostHeaderBytes> start{};
  const std::size_t read = gunzip.read(start);
  const Header header = parse_header(ByteView(start).first(read), path);
  if (header.total_bytes > Gunzip::most_unpacked(packed.size())) {
    fail(path, core::text("its header announces ", core::bytes_text(header.total_bytes), " (",
                          dims_text(header.dims), " ", name(header.type), "), but ", packed.size(),
                          " bytes of gzip data cannot hold more than ",
                          core::bytes_text(Gunzip::most_unpacked(packed.size()))));
  }
  std::vector<std::byte> whole(static_cast<std::size_t>(header.total_bytes));
  const std::size_t already = std::min(read, whole.size());
  std::ranges::copy(ByteView(start).first(already), whole.begin());
  std::uint64_t found = read + gunzip.read(std::span(whole).subspan(already));
  // Up to the end, where gzip's own check sum stands.
  std::array<std::byte, 4096> surplus{};
  while (const std::size_t more = gunzip.read(surplus)) found += more;
  check_size(header, found, path);
  return whole;
}

template <std::size_t kSize>
void swap_bytes(std::span<std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += kSize) {
    std::ranges::reverse(bytes.subspan(i, kSize));
  }
}

std::vector<std::byte> in_native_order(ByteView big_endian, std::size_t element_size) {
  std::vector<std::byte> bytes(big_endian.begin(), big_endian.end());
  switch (element_size) {
    case 2: swap_bytes<2>(bytes); break;
    case 4: swap_bytes<4>(bytes); break;
    default: swap_bytes<8>(bytes); break;
  }
  return bytes;
}

IdxFile make_file(Bytes storage, const fs::path& path) {
  const ByteView whole = storage.view();
  Header header = parse_header(whole, path);
  check_size(header, whole.size(), path);
  ByteView elements = whole.subspan(header.header_bytes);
  const std::size_t element_size = size_of(header.type);
  if (element_size > 1 && std::endian::native == std::endian::little) {
    storage = Bytes(in_native_order(elements, element_size));
    elements = storage.view();
  }
  return {path, header.type, std::move(header.dims), std::move(storage), elements};
}

template <class T>
T element(ByteView bytes, std::int64_t position) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<std::size_t>(position) * sizeof(T), sizeof(T));
  return value;
}

}  // namespace

std::string_view name(IdxType type) noexcept {
  return facts_of(static_cast<std::byte>(type))->name;
}

std::size_t size_of(IdxType type) noexcept { return facts_of(static_cast<std::byte>(type))->size; }

IdxFile::IdxFile(fs::path path, IdxType type, std::vector<std::int64_t> dims, Bytes storage,
                 ByteView elements)
    : path_(std::move(path)),
      type_(type),
      dims_(std::move(dims)),
      storage_(std::make_unique<Bytes>(std::move(storage))),
      elements_(elements),
      item_bytes_(items() == 0 ? 0 : elements.size() / static_cast<std::size_t>(items())) {}

IdxFile::~IdxFile() = default;
IdxFile::IdxFile(IdxFile&&) noexcept = default;
IdxFile& IdxFile::operator=(IdxFile&&) noexcept = default;

ByteView IdxFile::item(std::int64_t item) const noexcept {
  return elements_.subspan(static_cast<std::size_t>(item) * item_bytes_, item_bytes_);
}

std::int64_t IdxFile::integer(std::int64_t position) const {
  const auto count = static_cast<std::int64_t>(elements_.size() / size_of(type_));
  if (position < 0 || position >= count) {
    throw Error(Code::invalid_argument,
                core::text("read ", path_.string(), ": element ", position, " of ", count));
  }
  switch (type_) {
    case IdxType::u8: return element<std::uint8_t>(elements_, position);
    case IdxType::i8: return element<std::int8_t>(elements_, position);
    case IdxType::i16: return element<std::int16_t>(elements_, position);
    case IdxType::i32: return element<std::int32_t>(elements_, position);
    default: break;
  }
  throw Error(Code::invalid_argument,
              core::text("read ", path_.string(), " as integers: its elements are ", name(type_)));
}

IdxFile open_idx(const fs::path& path) {
  Bytes file = Bytes::map(path);
  if (!is_gzip(file.view())) return make_file(std::move(file), path);
  return make_file(unpacked_through_cache(path, file.view(), unpack), path);
}

IdxFile parse_idx(std::vector<std::byte> bytes, fs::path name) {
  if (is_gzip(bytes)) bytes = unpack(bytes, name);
  return make_file(Bytes(std::move(bytes)), name);
}

}  // namespace yoke::feed
