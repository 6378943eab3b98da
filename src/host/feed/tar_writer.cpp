#include "tar_writer.hpp"

#include <array>
#include <cstdio>
#include <cstring>
#include <string>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::feed {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kMostName = 100;
using Block = std::array<char, kBlock>;

void put(Block& block, std::size_t at, std::string_view text) {
  std::memcpy(block.data() + at, text.data(), text.size());
}

Block header_of(std::string_view name, std::size_t size) {
  constexpr std::size_t kSumAt = 148;
  Block block{};
  put(block, 0, name);
  put(block, 100, "0000644");
  put(block, 108, "0000000");
  put(block, 116, "0000000");
  std::snprintf(block.data() + 124, 12, "%011zo", size);
  put(block, 136, "00000000000");
  put(block, kSumAt, "        ");
  block[156] = '0';
  put(block, 257, std::string_view("ustar\000", 6));
  put(block, 263, "00");
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  std::snprintf(block.data() + kSumAt, 8, "%06o", sum);
  return block;
}

}  // namespace

void TarWriter::add(std::string_view name, std::span<const std::byte> bytes) {
  if (name.size() > kMostName) {
    throw Error(Code::invalid_argument, core::text("write a tar member: its name has ", name.size(),
                                                   " bytes, at most ", kMostName, ": ", name));
  }
  const Block header = header_of(name, bytes.size());
  file_.write(header.data(), header.size());
  file_.write(bytes.data(), bytes.size());
  pad();
}

void TarWriter::pad() {
  const std::string zeros((kBlock - file_.size() % kBlock) % kBlock, '\0');
  file_.write(zeros);
}

void TarWriter::finish() {
  file_.write(std::string(2 * kBlock, '\0'));
  file_.commit();
}

}  // namespace yoke::feed
