#include "zip_writer.hpp"

#include <zlib.h>

#include <cstdio>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "zip_format.hpp"

namespace yoke::archive {
namespace {

using std::uint16_t;
using std::uint32_t;
using std::uint64_t;

constexpr uint16_t kFlags = zip::kDescriptorFollows | zip::kNamesAreUtf8;
constexpr uint16_t kZero16 =
    0;  // version, method "stored", time and date: equal input gives equal bytes
constexpr uint32_t kZero32 = 0;

uint32_t checksum(uint32_t so_far, std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(
      ::crc32_z(so_far, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

template <class Narrow>
Narrow narrow_or(uint64_t number, bool in_64, Narrow mark) {
  return in_64 ? mark : static_cast<Narrow>(number);
}

}  // namespace

ZipWriter::ZipWriter(core::AtomicFile& file, std::string folder, ZipWriterOptions options)
    : file_(file), folder_(std::move(folder)), options_(options) {}

void ZipWriter::begin(std::string_view name, uint64_t size) {
  Entry entry{.name = core::text(folder_, "/", name), .header_at = file_.size(), .size = size};
  std::string extra;
  if (is_long(size)) zip::put(extra, zip::kExtra64, uint16_t{16}, size, size);
  const uint64_t unpadded =
      entry.header_at + zip::kLocalHeaderBytes + entry.name.size() + extra.size() + 4;
  const uint64_t padding =
      (options_.alignment - unpadded % options_.alignment) % options_.alignment;
  zip::put(extra, zip::kExtraPadding, static_cast<uint16_t>(padding));
  extra.append(padding, 'Z');

  const uint32_t header_size = is_long(size) ? zip::kIn64 : 0;
  std::string header;
  zip::put(header, zip::kLocalHeader, kZero16, kFlags, kZero16, kZero16, kZero16, kZero32,
           header_size, header_size, static_cast<uint16_t>(entry.name.size()),
           static_cast<uint16_t>(extra.size()));
  file_.write(header + entry.name + extra);
  missing_ = size;
  entries_.push_back(std::move(entry));
}

void ZipWriter::append(std::span<const std::byte> bytes) {
  if (bytes.size() > missing_) {
    throw Error(Code::internal, core::text("zip record ", entries_.back().name, ": ",
                                           bytes.size() - missing_, " B more than announced"));
  }
  entries_.back().crc = checksum(entries_.back().crc, bytes);
  missing_ -= bytes.size();
  file_.write(bytes.data(), bytes.size());
}

void ZipWriter::end() {
  const Entry& entry = entries_.back();
  if (missing_ != 0) {
    throw Error(Code::internal,
                core::text("zip record ", entry.name, ": ", missing_, " B less than announced"));
  }
  std::string descriptor;
  zip::put(descriptor, zip::kDataDescriptor, entry.crc);
  if (is_long(entry.size)) {
    zip::put(descriptor, entry.size, entry.size);
  } else {
    zip::put(descriptor, static_cast<uint32_t>(entry.size), static_cast<uint32_t>(entry.size));
  }
  file_.write(descriptor);
}

void ZipWriter::add(std::string_view name, std::string_view bytes) {
  begin(name, bytes.size());
  append(std::as_bytes(std::span(bytes)));
  end();
}

std::string ZipWriter::digest() const {
  uint64_t names = 0xCBF2'9CE4'8422'2325;  // FNV-1a
  uint64_t contents = names;
  const auto mix = [](uint64_t& hash, unsigned char byte) {
    hash = (hash ^ byte) * 0x100'0000'01B3;
  };
  for (const Entry& entry : entries_) {
    for (const char letter : entry.name) mix(names, static_cast<unsigned char>(letter));
    mix(names, '\n');
    for (int shift = 0; shift < 32; shift += 8)
      mix(contents, static_cast<unsigned char>(entry.crc >> shift));
  }
  char digits[41];
  std::snprintf(digits, sizeof digits, "%020llu%020llu", static_cast<unsigned long long>(names),
                static_cast<unsigned long long>(contents));
  return digits;
}

std::string ZipWriter::central_header(const Entry& entry) const {
  const bool long_size = is_long(entry.size);
  const bool long_offset = is_long(entry.header_at);
  std::string extra;
  if (long_size || long_offset) {
    zip::put(extra, zip::kExtra64,
             static_cast<uint16_t>((long_size ? 16 : 0) + (long_offset ? 8 : 0)));
    if (long_size) zip::put(extra, entry.size, entry.size);
    if (long_offset) zip::put(extra, entry.header_at);
  }
  const uint32_t size = narrow_or(entry.size, long_size, zip::kIn64);
  std::string header;
  zip::put(header, zip::kCentralHeader, kZero16, kZero16, kFlags, kZero16, kZero16, kZero16,
           entry.crc, size, size, static_cast<uint16_t>(entry.name.size()),
           static_cast<uint16_t>(extra.size()), kZero16, kZero16, kZero16, kZero32,
           narrow_or(entry.header_at, long_offset, zip::kIn64));
  return header + entry.name + extra;
}

void ZipWriter::finish() {
  const uint64_t directory_at = file_.size();
  for (const Entry& entry : entries_) file_.write(central_header(entry));
  const uint64_t end_at = file_.size();
  const uint64_t directory_bytes = end_at - directory_at;
  const uint64_t count = entries_.size();
  const bool many = count >= zip::kCountIn64;
  const auto short_count = narrow_or(count, many, zip::kCountIn64);

  std::string end;  // the 64-bit form always stands there, as PyTorch writes it
  zip::put(end, zip::kEnd64, uint64_t{zip::kEnd64Bytes - 12}, uint16_t{45}, uint16_t{45}, kZero32,
           kZero32, count, count, directory_bytes, directory_at);
  zip::put(end, zip::kEnd64Locator, kZero32, end_at, uint32_t{1});
  zip::put(end, zip::kEnd, kZero16, kZero16, short_count, short_count,
           narrow_or(directory_bytes, is_long(directory_bytes), zip::kIn64),
           narrow_or(directory_at, is_long(directory_at), zip::kIn64), kZero16);
  file_.write(end);
}

}  // namespace yoke::archive
