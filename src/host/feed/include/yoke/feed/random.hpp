#pragma once

#include <array>
#include <cstdint>

namespace yoke::feed {

/// What a sample's random choices depend on, and nothing else: not the thread, the rank or the
/// time.
struct SampleKey {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t index = 0;  ///< in the data set
};

/// Ten rounds of Philox 4x32 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
/// 1, 2, 3", 2011): a bijection of the 128 bits of `counter` for each `key`. Equal on every
/// machine.
[[nodiscard]] std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) noexcept;

/// The random numbers of one sample in one epoch: two keys that differ anywhere give unrelated
/// streams.
///
///   Draws draws({.seed = 7, .epoch = 3, .index = 41});
///   const bool flip = draws.uniform() < 0.5;
///   const auto left = draws.below(width - 224 + 1);
///
/// Threads: a value; one thread at a time.
/// Cost: about 10 ns a number; 2^34 numbers a sample.
class Draws {
 public:
  explicit Draws(const SampleKey& key) noexcept;

  [[nodiscard]] std::uint32_t bits32() noexcept;
  [[nodiscard]] std::uint64_t bits64() noexcept;

  /// In [0, 1), a multiple of 2^-53.
  [[nodiscard]] double uniform() noexcept;

  /// In [0, bound), without bias. Requires: bound > 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept;

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;  // index (low, high), epoch, block
  std::array<std::uint32_t, 4> block_{};
  unsigned used_ = 4;  // of block_
};

}  // namespace yoke::feed
