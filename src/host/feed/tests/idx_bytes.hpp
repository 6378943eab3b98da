#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/core/files.hpp"
#include "yoke/feed/idx.hpp"

namespace yoke::feed {

inline void append_big_endian(std::string& bytes, std::uint64_t value, int count) {
  for (int shift = 8 * (count - 1); shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>(value >> shift & 0xFF));
  }
}

inline std::string idx_header(IdxType type, const std::vector<std::uint32_t>& dims) {
  std::string bytes{'\0', '\0', static_cast<char>(type), static_cast<char>(dims.size())};
  for (const std::uint32_t dim : dims) append_big_endian(bytes, dim, 4);
  return bytes;
}

/// An IDX file of bytes 0, 1, 2, ... of these dims.
inline std::string counting_images(const std::vector<std::uint32_t>& dims) {
  std::string bytes = idx_header(IdxType::u8, dims);
  const auto count =
      std::accumulate(dims.begin(), dims.end(), std::size_t{1}, std::multiplies<std::size_t>());
  for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>(i));
  return bytes;
}

inline std::string labels_file(const std::vector<int>& labels) {
  std::string bytes = idx_header(IdxType::u8, {static_cast<std::uint32_t>(labels.size())});
  for (const int label : labels) bytes.push_back(static_cast<char>(label));
  return bytes;
}

/// gzip's form of the bytes.
inline std::string gzipped(std::string_view plain) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, plain.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

inline std::vector<std::byte> as_bytes(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

}  // namespace yoke::feed
