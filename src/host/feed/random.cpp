#include "yoke/feed/random.hpp"

namespace yoke::feed {
namespace {

constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;  // golden ratio
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;  // square root of 3, less 1

std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
std::uint32_t high(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {high(product1) ^ counter[1] ^ key[0], low(product1),
               high(product0) ^ counter[3] ^ key[1], low(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

Draws::Draws(const SampleKey& key) noexcept
    : key_{low(key.seed), high(key.seed)},
      counter_{low(static_cast<std::uint64_t>(key.index)),
               high(static_cast<std::uint64_t>(key.index)),
               low(static_cast<std::uint64_t>(key.epoch)), 0} {}

std::uint32_t Draws::bits32() noexcept {
  if (used_ == block_.size()) {
    block_ = philox(counter_, key_);
    ++counter_[3];
    used_ = 0;
  }
  return block_[used_++];
}

std::uint64_t Draws::bits64() noexcept {
  const std::uint64_t upper = bits32();
  return upper << 32 | bits32();
}

double Draws::uniform() noexcept { return static_cast<double>(bits64() >> 11) * 0x1p-53; }

std::uint64_t Draws::below(std::uint64_t bound) noexcept {
  // 2^64 is seldom a multiple of the bound: the first (2^64 mod bound) values would come once too
  // often.
  const std::uint64_t surplus = (0 - bound) % bound;
  std::uint64_t value = bits64();
  while (value < surplus) value = bits64();
  return value % bound;
}

}  // namespace yoke::feed
