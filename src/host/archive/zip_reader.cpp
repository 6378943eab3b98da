#include "zip_reader.hpp"

#include <zlib.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "yoke/core/text.hpp"
#include "zip_format.hpp"

namespace yoke::archive {
namespace {

using core::text;
using Bytes = std::span<const std::byte>;

/// Little-endian fields one after the other. Requires: the caller has checked that they are there.
class Fields {
 public:
  explicit Fields(Bytes bytes) : bytes_(bytes) {}

  template <class Number>
  Number take() {
    std::uint64_t number = 0;
    for (std::size_t i = sizeof(Number); i-- > 0;)
      number = number << 8 | static_cast<std::uint64_t>(bytes_[i]);
    bytes_ = bytes_.subspan(sizeof(Number));
    return static_cast<Number>(number);
  }
  std::uint16_t u16() { return take<std::uint16_t>(); }
  std::uint32_t u32() { return take<std::uint32_t>(); }
  std::uint64_t u64() { return take<std::uint64_t>(); }
  void skip(std::size_t count) { bytes_ = bytes_.subspan(count); }
  [[nodiscard]] std::size_t left() const { return bytes_.size(); }

 private:
  Bytes bytes_;
};

bool has_signature(Bytes bytes, std::uint64_t at, std::uint32_t signature) {
  return at <= bytes.size() && bytes.size() - at >= 4 &&
         Fields(bytes.subspan(at)).u32() == signature;
}

std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Replaces those of the three numbers that are marked as 64-bit; false if the extra field lacks
/// them.
bool widen(Bytes extra, std::uint64_t& size, std::uint64_t& packed_size, std::uint64_t& header_at) {
  if (size != zip::kIn64 && packed_size != zip::kIn64 && header_at != zip::kIn64) return true;
  while (extra.size() >= 4) {
    Fields fields(extra);
    const std::uint16_t id = fields.u16();
    const std::size_t bytes = fields.u16();
    if (bytes > extra.size() - 4) return false;
    if (id == zip::kExtra64) {
      Fields numbers(extra.subspan(4, bytes));
      for (std::uint64_t* number : {&size, &packed_size, &header_at}) {
        if (*number != zip::kIn64) continue;
        if (numbers.left() < 8) return false;
        *number = numbers.u64();
      }
      return true;
    }
    extra = extra.subspan(4 + bytes);
  }
  return false;
}

}  // namespace

/// The fields of a central header that matter here.
struct ZipReader::Header {
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint64_t packed_size = 0;
  std::uint64_t size = 0;
  std::size_t name_bytes = 0;
  std::size_t extra_bytes = 0;
  std::size_t comment_bytes = 0;
  std::uint64_t header_at = 0;

  explicit Header(Fields fields) {
    fields.skip(8);  // signature, versions
    flags = fields.u16();
    method = fields.u16();
    fields.skip(4);  // time
    crc = fields.u32();
    packed_size = fields.u32();
    size = fields.u32();
    name_bytes = fields.u16();
    extra_bytes = fields.u16();
    comment_bytes = fields.u16();
    fields.skip(8);  // disk, attributes
    header_at = fields.u32();
  }
};

ZipReader::ZipReader(const Source& source) : source_(source) { read_directory(find_directory()); }

std::size_t ZipReader::find_end() const {
  const Bytes bytes = source_.bytes;
  constexpr std::size_t kLongestComment = 0xFFFF;
  if (bytes.size() < zip::kEndBytes) throw corrupt(source_, "too short for a zip file");
  const std::size_t last = bytes.size() - zip::kEndBytes;
  const std::size_t first = last - std::min(last, kLongestComment);
  for (std::size_t at = last + 1; at-- > first;) {
    if (!has_signature(bytes, at, zip::kEnd)) continue;
    Fields comment(bytes.subspan(at + zip::kEndBytes - 2));
    if (comment.u16() == last - at) return at;
  }
  throw corrupt(source_, has_signature(bytes, 0, zip::kLocalHeader)
                             ? "the zip directory, which ends such a file, is missing"
                             : "no zip file");
}

ZipReader::Directory ZipReader::find_directory() const {
  const Bytes bytes = source_.bytes;
  const std::size_t end_at = find_end();
  Fields end(bytes.subspan(end_at + 10));
  Directory directory;
  directory.count = end.u16();
  directory.bytes = end.u32();
  directory.at = end.u32();
  std::uint64_t limit = end_at;
  if (end_at >= zip::kEnd64LocatorBytes &&
      has_signature(bytes, end_at - zip::kEnd64LocatorBytes, zip::kEnd64Locator)) {
    limit = Fields(bytes.subspan(end_at - zip::kEnd64LocatorBytes + 8)).u64();
    if (limit > end_at - zip::kEnd64LocatorBytes ||
        end_at - limit < zip::kEnd64Bytes + zip::kEnd64LocatorBytes ||
        !has_signature(bytes, limit, zip::kEnd64)) {
      throw corrupt(source_, text("no 64-bit zip end record at byte ", limit));
    }
    Fields end64(bytes.subspan(limit + 32));
    directory.count = end64.u64();
    directory.bytes = end64.u64();
    directory.at = end64.u64();
  }
  if (directory.at > limit || directory.bytes > limit - directory.at ||
      directory.count > directory.bytes / zip::kCentralHeaderBytes) {
    throw corrupt(source_, text("a zip directory of ", directory.count, " records in ",
                                directory.bytes, " B at byte ", directory.at, " does not fit"));
  }
  return directory;
}

void ZipReader::read_directory(const Directory& directory) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;  // of the records, header included
  Bytes rest = source_.bytes.subspan(directory.at, directory.bytes);
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    const auto broken = [&](const char* what) {
      return corrupt(source_,
                     text("zip directory, record ", i + 1, " of ", directory.count, ": ", what));
    };
    if (rest.size() < zip::kCentralHeaderBytes || !has_signature(rest, 0, zip::kCentralHeader)) {
      throw broken("no header");
    }
    Header header{Fields(rest)};
    rest = rest.subspan(zip::kCentralHeaderBytes);
    if (rest.size() < header.name_bytes + header.extra_bytes + header.comment_bytes)
      throw broken("cut off");
    const std::string name(as_text(rest.first(header.name_bytes)));
    if (!widen(rest.subspan(header.name_bytes, header.extra_bytes), header.size, header.packed_size,
               header.header_at)) {
      throw broken("no 64-bit sizes");
    }
    rest = rest.subspan(header.name_bytes + header.extra_bytes + header.comment_bytes);
    if (!is_utf8(name)) throw broken("its name is not UTF-8");
    if (i == 0) first_name_ = name;
    has_checksums_ = has_checksums_ || header.crc != 0;
    const Record record{locate(header, name, directory.at), header.size, header.crc, header.method,
                        header.flags};
    if (!records_.emplace(name, record).second) throw broken("its name is there twice");
    places.emplace_back(header.header_at,
                        record.bytes.data() + record.bytes.size() - source_.bytes.data());
  }
  std::ranges::sort(places);
  for (std::size_t i = 1; i < places.size(); ++i) {
    if (places[i].first < places[i - 1].second)
      throw corrupt(source_, "two zip records share bytes");
  }
}

Bytes ZipReader::locate(const Header& header, std::string_view name, std::uint64_t limit) const {
  const std::string what = text("zip record ", name);
  const Bytes before = source_.bytes.first(limit);
  if (!has_signature(before, header.header_at, zip::kLocalHeader) ||
      before.size() - header.header_at < zip::kLocalHeaderBytes) {
    throw corrupt(source_, text(what, ": no header at byte ", header.header_at));
  }
  Fields local(before.subspan(header.header_at + 26));
  const std::size_t name_bytes = local.u16();
  const std::size_t extra_bytes = local.u16();
  const Bytes rest = before.subspan(header.header_at + zip::kLocalHeaderBytes);
  if (rest.size() < name_bytes + extra_bytes || as_text(rest.first(name_bytes)) != name) {
    throw corrupt(source_, text(what, ": another header at byte ", header.header_at));
  }
  const Bytes content = rest.subspan(name_bytes + extra_bytes);
  if (header.packed_size > content.size()) {
    throw corrupt(source_, text(what, ": its ", header.packed_size, " B end behind the records"));
  }
  return content.first(header.packed_size);
}

bool ZipReader::has(std::string_view name) const { return records_.find(name) != records_.end(); }

Bytes ZipReader::record(std::string_view name) const {
  const auto found = records_.find(name);
  if (found == records_.end()) throw corrupt(source_, text("no record ", name));
  const Record& record = found->second;
  if (record.method != 0) {
    throw unsupported(source_,
                      text("zip record ", name, " is compressed (method ", record.method, ")"),
                      "PyTorch stores records as they are: save it again with torch.save");
  }
  if ((record.flags & zip::kEncrypted) != 0) {
    throw unsupported(source_, text("zip record ", name, " is encrypted"));
  }
  if (record.size != record.bytes.size()) {
    throw corrupt(source_, text("zip record ", name, " has two sizes"));
  }
  const auto* start = reinterpret_cast<const unsigned char*>(record.bytes.data());
  if (has_checksums_ && ::crc32_z(0, start, record.bytes.size()) != record.crc) {
    throw corrupt(source_,
                  text("record ", name, " of ", record.bytes.size(), " B: its CRC-32 differs"));
  }
  return record.bytes;
}

}  // namespace yoke::archive
