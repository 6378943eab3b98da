#include "yoke/feed/order.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "yoke/core/error.hpp"
#include "yoke/feed/random.hpp"

namespace yoke::feed {
namespace {

template <class AnyOrder>
std::vector<std::int64_t> whole(const AnyOrder& order) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < order.length(); ++i) indices.push_back(order[i]);
  return indices;
}

bool holds_each_once(std::vector<std::int64_t> indices) {
  std::ranges::sort(indices);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

TEST(Permutation, HoldsEachIndexOnceForAnyLength) {
  for (const std::int64_t length : {0, 1, 2, 3, 7, 255, 256, 257, 1000, 60'000, 65'537}) {
    const Permutation order(7, 3, length);

    const auto indices = whole(order);

    EXPECT_EQ(std::ssize(indices), length);
    EXPECT_TRUE(holds_each_once(indices)) << "length " << length;
  }
}

TEST(Permutation, StaysInsideAnEnormousLength) {
  const std::int64_t length = std::int64_t{1} << 62;
  const Permutation order(7, 3, length);

  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < 1000; ++i) seen.insert(order[length - 1 - i]);

  EXPECT_EQ(seen.size(), 1000U);
  EXPECT_GE(*seen.begin(), 0);
  EXPECT_LT(*seen.rbegin(), length);
}

TEST(Permutation, IsAFunctionOfSeedAndEpoch) {
  const auto first = whole(Permutation(7, 3, 1000));

  EXPECT_EQ(first, whole(Permutation(7, 3, 1000)));
  EXPECT_NE(first, whole(Permutation(8, 3, 1000)));
  EXPECT_NE(first, whole(Permutation(7, 4, 1000)));
  EXPECT_NE(whole(Permutation(7, 4, 1000)), whole(Permutation(8, 3, 1000)));
}

// With `draws` draws over `cells` equally likely cells the statistic has mean cells - 1 and
// variance 2 (cells - 1).
template <class Counts>
double deviations_of_chi_square(const Counts& counts, double draws, double cells) {
  const double expected = draws / cells;
  double sum =
      expected * (cells - static_cast<double>(counts.size()));  // cells that were never hit
  for (const auto& [cell, count] : counts) {
    sum += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected) /
           expected;
  }
  return (sum - (cells - 1)) / std::sqrt(2 * (cells - 1));
}

TEST(Permutation, GivesEachArrangementOfFewItemsEquallyOften) {
  for (const auto& [length, arrangements] : {std::pair{2, 2}, {3, 6}, {4, 24}, {5, 120}}) {
    std::map<std::vector<std::int64_t>, int> counts;
    const int seeds = 100 * arrangements;

    for (int seed = 0; seed < seeds; ++seed) {
      ++counts[whole(Permutation(static_cast<std::uint64_t>(seed), 0, length))];
    }

    EXPECT_LT(std::abs(deviations_of_chi_square(counts, seeds, arrangements)), 4)
        << "length " << length;
  }
}

TEST(Permutation, SendsEachPositionEverywhereEquallyOften) {
  constexpr int kLength = 37;
  constexpr int kEpochs = 4000;
  for (const std::int64_t position : {0, 1, 18, 36}) {
    std::map<std::int64_t, int> counts;

    for (int epoch = 0; epoch < kEpochs; ++epoch)
      ++counts[Permutation(7, epoch, kLength)[position]];

    EXPECT_LT(std::abs(deviations_of_chi_square(counts, kEpochs, kLength)), 4)
        << "position " << position;
  }
}

TEST(Permutation, SendsNeighboursApart) {
  // The distance of two random positions modulo n is uniform: sort it into 20 equal cells.
  constexpr std::int64_t kLength = 60'000;
  const Permutation order(7, 0, kLength);
  std::map<std::int64_t, int> counts;

  for (std::int64_t i = 0; i + 1 < kLength; ++i) {
    ++counts[(order[i + 1] - order[i] + kLength) % kLength / (kLength / 20)];
  }

  EXPECT_LT(std::abs(deviations_of_chi_square(counts, kLength - 1, 20)), 4);
}

// From Python: torch.randperm(8, generator=torch.Generator().manual_seed(0 + epoch)).
TEST(TorchOrder, B056HasTheOrderOfTorchsGeneratorInEachEpoch) {
  const Order first(Shuffle::torch_compat, 0, 0, 8);
  const Order second(Shuffle::torch_compat, 0, 1, 8);

  EXPECT_EQ(whole(first), (std::vector<std::int64_t>{4, 0, 7, 3, 2, 5, 1, 6}));
  EXPECT_EQ(whole(second), (std::vector<std::int64_t>{5, 4, 2, 6, 7, 3, 1, 0}));
}

TEST(TorchOrder, HoldsEachIndexOnceForAnyLength) {
  for (const std::int64_t length : {0, 1, 2, 3, 7, 1000, 65'537}) {
    EXPECT_TRUE(holds_each_once(torch_permutation(7, 3, length))) << "length " << length;
  }
}

TEST(Order, WithoutShuffleIsTheDataSetsOwn) {
  EXPECT_EQ(whole(Order(Shuffle::none, 7, 3, 4)), (std::vector<std::int64_t>{0, 1, 2, 3}));
}

TEST(Order, NamesTheNearestKindForAnUnknownOne) {
  EXPECT_EQ(shuffle_from_name("torch_compat"), Shuffle::torch_compat);
  try {
    (void)shuffle_from_name("torch-compat");
    FAIL() << "accepted an unknown name";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_EQ(error.hint(), "did you mean torch_compat?");
  }
}

TEST(Order, RefusesANegativeLength) { EXPECT_THROW(Permutation(7, 0, -1), Error); }

// The known answers that the authors of Philox publish with it.
TEST(Philox, GivesItsAuthorsAnswers) {
  using Four = std::array<std::uint32_t, 4>;

  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}),
            (Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// 20 samples, 2 epochs: the value depends on (seed, epoch, index) alone, so workers cannot matter.
TEST(Draws, B060AreEqualInARepeatedRunAndDifferentBetweenSamplesAndEpochs) {
  std::vector<std::uint64_t> first;
  std::vector<std::uint64_t> again;
  for (const std::int64_t epoch : {0, 1}) {
    for (std::int64_t index = 0; index < 20; ++index) {
      first.push_back(Draws({.seed = 1, .epoch = epoch, .index = index}).below(10'000));
      again.push_back(Draws({.seed = 1, .epoch = epoch, .index = index}).below(10'000));
    }
  }

  EXPECT_EQ(first, again);
  // 40 draws of 10,000 values repeat one 0.08 times on average; three or more repeats are one in
  // 10,000 runs.
  EXPECT_GE(std::set(first.begin(), first.end()).size(), 38U);
}

TEST(Draws, AreUniform) {
  Draws draws({.seed = 7, .epoch = 0, .index = 5});
  std::map<int, int> tenths;
  std::map<std::uint64_t, int> faces;

  for (int i = 0; i < 20'000; ++i) {
    ++tenths[static_cast<int>(draws.uniform() * 10)];
    ++faces[draws.below(6)];
  }

  EXPECT_EQ(tenths.size(), 10U);
  EXPECT_EQ(faces.size(), 6U);
  EXPECT_LT(std::abs(deviations_of_chi_square(tenths, 20'000, 10)), 4);
  EXPECT_LT(std::abs(deviations_of_chi_square(faces, 20'000, 6)), 4);
}

}  // namespace
}  // namespace yoke::feed
