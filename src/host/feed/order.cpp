#include "yoke/feed/order.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/feed/random.hpp"

namespace yoke::feed {
namespace {

// Note [Permutation]
// A Feistel network over the smallest 2^b >= length: b bits in two halves, and in each round one
// half is xored with a keyed hash of the other, which any hash undoes itself. What lands at or
// beyond `length` goes through again until it does not (cycle walking); that stays a bijection, and
// since 2^b < 2 length it takes less than two passes on average. Small lengths use 2^8 all the
// same: halves of one or two bits reach only some of the permutations.

constexpr unsigned kLeastBits = 8;

// A sample's index is never this, so that the order's keys are drawn from a stream of their own.
constexpr std::int64_t kOrderStream = -1;

// The finisher of splitmix64 (Steele, Lea and Flood, 2014).
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31);
}

std::uint64_t mask(unsigned bits) { return (std::uint64_t{1} << bits) - 1; }

std::int64_t checked_length(std::int64_t length) {
  if (length < 0) {
    throw Error(Code::invalid_argument, core::text("order samples: the length is ", length));
  }
  return length;
}

constexpr std::array<std::pair<std::string_view, Shuffle>, 3> kShuffleNames{{
    {"none", Shuffle::none},
    {"permutation", Shuffle::permutation},
    {"torch_compat", Shuffle::torch_compat},
}};

}  // namespace

Permutation::Permutation(std::uint64_t seed, std::int64_t epoch, std::int64_t length)
    : length_(checked_length(length)) {
  const auto last = static_cast<std::uint64_t>(std::max<std::int64_t>(length, 1) - 1);
  const unsigned bits = std::max(kLeastBits, static_cast<unsigned>(std::bit_width(last)));
  left_bits_ = bits / 2;
  right_bits_ = bits - left_bits_;
  Draws draws({.seed = seed, .epoch = epoch, .index = kOrderStream});
  for (std::uint64_t& key : keys_) key = draws.bits64();
}

std::int64_t Permutation::operator[](std::int64_t position) const noexcept {
  std::uint64_t left = static_cast<std::uint64_t>(position) >> right_bits_;
  std::uint64_t right = static_cast<std::uint64_t>(position) & mask(right_bits_);
  const auto length = static_cast<std::uint64_t>(length_);
  while (true) {
    for (std::size_t round = 0; round < kRounds; round += 2) {
      left ^= mixed(right ^ keys_[round]) & mask(left_bits_);
      right ^= mixed(left ^ keys_[round + 1]) & mask(right_bits_);
    }
    const std::uint64_t index = left << right_bits_ | right;
    if (index < length) return static_cast<std::int64_t>(index);
  }
}

std::vector<std::int64_t> torch_permutation(std::uint64_t seed, std::int64_t epoch,
                                            std::int64_t length) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(checked_length(length)));
  // Torch's generator is this one, seeded with the low 32 bits.
  std::mt19937 generator(static_cast<std::uint32_t>(seed + static_cast<std::uint64_t>(epoch)));
  const std::size_t count = order.size();
  if (count < std::numeric_limits<std::uint32_t>::max() / 20) {
    std::iota(order.begin(), order.end(), std::int64_t{0});
    for (std::size_t i = 0; i + 1 < count; ++i) {
      std::swap(order[i], order[i + generator() % (count - i)]);
    }
    return order;
  }
  // From this length on torch draws 64 bits a sample and shuffles from the inside out.
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t upper = generator();
    const std::size_t other = (upper << 32 | generator()) % (i + 1);
    order[i] = order[other];
    order[other] = static_cast<std::int64_t>(i);
  }
  return order;
}

Shuffle shuffle_from_name(std::string_view name) {
  std::vector<std::string> known;
  for (const auto& [text, value] : kShuffleNames) {
    if (text == name) return value;
    known.emplace_back(text);
  }
  throw Error(Code::invalid_argument, core::text("shuffle \"", name, "\": no such order"),
              core::unknown_name_hint(name, known));
}

Order::Order(Shuffle shuffle, std::uint64_t seed, std::int64_t epoch, std::int64_t length)
    : shuffle_(shuffle), permutation_(seed, epoch, length) {
  if (shuffle == Shuffle::torch_compat) stored_ = torch_permutation(seed, epoch, length);
}

std::int64_t Order::operator[](std::int64_t position) const noexcept {
  switch (shuffle_) {
    case Shuffle::none: return position;
    case Shuffle::permutation: return permutation_[position];
    case Shuffle::torch_compat: return stored_[static_cast<std::size_t>(position)];
  }
  return position;
}

}  // namespace yoke::feed
