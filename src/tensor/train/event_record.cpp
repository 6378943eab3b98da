#include "event_record.hpp"

#include <array>
#include <bit>
#include <cstddef>

namespace yoke::train {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // Castagnoli's, bits reversed
constexpr std::uint32_t kMask = 0xA282EAD8;

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    table[byte] = value;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = make_table();

std::uint32_t masked(std::uint32_t crc) { return std::rotr(crc, 15) + kMask; }

template <class Number>
void put_little_endian(std::string& out, Number number) {
  for (std::size_t byte = 0; byte < sizeof(Number); ++byte) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(number >> (8 * byte))));
  }
}

enum class Wire : std::uint32_t { varint = 0, eight_bytes = 1, counted = 2, four_bytes = 5 };

void put_varint(std::string& out, std::uint64_t number) {
  while (number >= 0x80) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(number | 0x80)));
    number >>= 7;
  }
  out.push_back(static_cast<char>(number));
}

void put_key(std::string& out, std::uint32_t field, Wire wire) {
  put_varint(out, (field << 3) | static_cast<std::uint32_t>(wire));
}

void put_double(std::string& out, std::uint32_t field, double value) {
  put_key(out, field, Wire::eight_bytes);
  put_little_endian(out, std::bit_cast<std::uint64_t>(value));
}

void put_float(std::string& out, std::uint32_t field, float value) {
  put_key(out, field, Wire::four_bytes);
  put_little_endian(out, std::bit_cast<std::uint32_t>(value));
}

void put_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  put_key(out, field, Wire::counted);
  put_varint(out, bytes.size());
  out += bytes;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) noexcept {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char c : bytes)
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~crc;
}

std::string tf_record(std::string_view message) {
  std::string out;
  put_little_endian(out, static_cast<std::uint64_t>(message.size()));
  put_little_endian(out, masked(crc32c(out)));
  out += message;
  put_little_endian(out, masked(crc32c(message)));
  return out;
}

std::string version_event(double wall_seconds) {
  std::string out;
  put_double(out, 1, wall_seconds);
  put_bytes(out, 3, "brain.Event:2");
  return out;
}

std::string start_event(double wall_seconds, std::int64_t step) {
  std::string session;
  put_key(session, 1, Wire::varint);
  put_varint(session, 1);
  std::string out;
  put_double(out, 1, wall_seconds);
  put_key(out, 2, Wire::varint);
  put_varint(out, static_cast<std::uint64_t>(step));
  put_bytes(out, 7, session);
  return out;
}

std::string scalars_event(double wall_seconds, std::int64_t step, const NamedValues& values) {
  std::string summary;
  for (const auto& [tag, number] : values) {
    std::string value;
    put_bytes(value, 1, tag);
    put_float(value, 2, static_cast<float>(number));
    put_bytes(summary, 1, value);
  }
  std::string out;
  put_double(out, 1, wall_seconds);
  put_key(out, 2, Wire::varint);
  put_varint(out, static_cast<std::uint64_t>(step));
  put_bytes(out, 5, summary);
  return out;
}

}  // namespace yoke::train
