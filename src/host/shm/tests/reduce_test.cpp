#include "../reduce.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "values.hpp"

namespace yoke::shm {
namespace {

using testing::decode;
using testing::encoded;
using testing::kAllDtypes;
using testing::kAllReductions;
using testing::reduced_value;
using testing::value_of;

template <class T>
std::vector<T> reduced(Dtype dtype, Reduction reduction, const std::vector<std::vector<T>>& ranks,
                       const std::vector<Contribution>& contributions = {}) {
  std::vector<Source> sources;
  double divisor = contributions.empty() ? static_cast<double>(ranks.size()) : 0.0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(ranks[rank].data());
    sources.push_back({bytes, contributions.empty() ? 1.0 : contributions[rank].scale});
    if (!contributions.empty()) divisor += contributions[rank].count;
  }
  std::vector<T> result(ranks[0].size());
  std::byte* const destination = reinterpret_cast<std::byte*>(result.data());
  reduce({.dtype = dtype,
          .reduction = reduction,
          .sources = sources,
          .divisor = divisor,
          .destinations = {&destination, 1},
          .count = result.size()});
  return result;
}

TEST(Reduce, EveryTypeAndReductionFitsItsFormulaForOddCounts) {
  for (const Dtype dtype : kAllDtypes) {
    for (const Reduction reduction : kAllReductions) {
      if (reduction == Reduction::mean && !is_floating(dtype)) continue;
      for (const std::size_t count : {1U, 7U, 31U, 2049U}) {
        std::vector<std::vector<std::byte>> ranks;
        for (int rank = 0; rank < 5; ++rank) {
          ranks.push_back(encoded(
              dtype, count, [&](std::size_t i) { return value_of(dtype, reduction, rank, i); }));
        }
        std::vector<Source> sources;
        for (const auto& bytes : ranks) sources.push_back({bytes.data(), 1.0});
        std::vector<std::byte> first(count * size_of(dtype));
        std::array<std::byte*, 2> destinations{first.data(), ranks[3].data()};  // one in place

        reduce({.dtype = dtype,
                .reduction = reduction,
                .sources = sources,
                .divisor = 5.0,
                .destinations = destinations,
                .count = count});

        const auto expected = encoded(
            dtype, count, [&](std::size_t i) { return reduced_value(dtype, reduction, 5, i); });
        EXPECT_EQ(first, expected) << name(dtype) << ' ' << name(reduction) << ' ' << count;
        EXPECT_EQ(ranks[3], expected) << name(dtype) << ' ' << name(reduction) << ' ' << count;
      }
    }
  }
}

TEST(Reduce, EveryHalfSurvivesTheWayThroughFloat) {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);

  const auto half = reduced<std::uint16_t>(Dtype::float16, Reduction::sum, {all});
  const auto brain = reduced<std::uint16_t>(Dtype::bfloat16, Reduction::sum, {all});

  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool half_nan = (i & 0x7c00U) == 0x7c00U && (i & 0x3ffU) != 0;
    const bool brain_nan = (i & 0x7f80U) == 0x7f80U && (i & 0x7fU) != 0;
    EXPECT_EQ(half[i], half_nan ? i | 0x200U : i) << i;  // NaNs become quiet
    EXPECT_EQ(brain[i], brain_nan ? i | 0x40U : i) << i;
  }
}

TEST(Reduce, HalvesRoundOnceToTheNearestAfterTheSumInFloat) {
  // 2048 + 1 + 1 in half steps of 2: rounding at each rank would stay at 2048.
  const std::vector<std::vector<std::uint16_t>> ranks{{0x6800}, {0x3c00}, {0x3c00}};

  const auto sum = reduced<std::uint16_t>(Dtype::float16, Reduction::sum, ranks);

  EXPECT_EQ(decode(Dtype::float16, reinterpret_cast<const std::byte*>(sum.data())), 2050.0);
}

TEST(Reduce, HalfRoundingFitsArithmeticOverTheWholeRange) {
  // Sums of two halves land between halves, on ties, among denormals and beyond the largest.
  std::vector<std::uint16_t> left;
  std::vector<std::uint16_t> right;
  for (std::uint32_t i = 0; i < 0x7c00; i += 7) {
    for (const std::uint32_t j : {0x0001U, 0x0200U, 0x1401U, 0x3c01U, 0x5bffU, 0x7bffU}) {
      left.push_back(static_cast<std::uint16_t>(i));
      right.push_back(static_cast<std::uint16_t>(j | ((i & 1U) << 15)));
    }
  }

  const auto half = reduced<std::uint16_t>(Dtype::float16, Reduction::sum, {left, right});

  for (std::size_t i = 0; i < left.size(); ++i) {
    const double a = testing::small_float_value(left[i], 10, 15);
    const double b = testing::small_float_value(right[i], 10, 15);
    const double sum = static_cast<double>(static_cast<float>(a) + static_cast<float>(b));
    const double nearest = testing::rounded(sum, 10, -24);
    const auto expected = std::fabs(nearest) >= 65536.0
                              ? static_cast<std::uint16_t>(std::signbit(sum) ? 0xfc00 : 0x7c00)
                              : testing::small_float_bits(nearest, 10, 15);
    EXPECT_EQ(half[i], expected) << a << " + " << b;
  }
}

TEST(Reduce, MeanWeightsByScaleAndDividesByTheCounts) {
  const std::vector<std::vector<double>> ranks{{3.0}, {5.0}, {7.0}};

  const auto mean =
      reduced<double>(Dtype::float64, Reduction::mean, ranks, {{1.0, 2.0}, {2.0, 3.0}, {0.5, 4.0}});

  EXPECT_EQ(mean[0], (1.0 * 3.0 + 2.0 * 5.0 + 0.5 * 7.0) / 9.0);
}

TEST(Reduce, MeanByAPowerOfTwoHasTheBitsOfADivision) {
  std::vector<float> one;
  for (std::uint32_t bits = 1; bits < 0x7f800000U; bits += 65'537)
    one.push_back(std::bit_cast<float>(bits));
  const std::vector<float> zero(one.size());

  const auto mean = reduced<float>(Dtype::float32, Reduction::mean, {one, zero});

  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(mean[i]), std::bit_cast<std::uint32_t>(one[i] / 2.0F));
  }
}

TEST(Reduce, NothingToReduceGivesZeros) {
  std::vector<float> result(9, 5.0F);
  std::byte* const destination = reinterpret_cast<std::byte*>(result.data());

  reduce({.reduction = Reduction::mean, .destinations = {&destination, 1}, .count = result.size()});

  EXPECT_EQ(result, std::vector<float>(9, 0.0F));
}

TEST(Reduce, NanOfAnyRankStaysInMinimumAndMaximum) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::vector<float>> ranks{{nan, 1.0F, 1.0F}, {2.0F, nan, 2.0F}};

  const auto least = reduced<float>(Dtype::float32, Reduction::minimum, ranks);
  const auto most = reduced<float>(Dtype::float32, Reduction::maximum, ranks);

  EXPECT_TRUE(std::isnan(least[0]) && std::isnan(least[1]));
  EXPECT_TRUE(std::isnan(most[0]) && std::isnan(most[1]));
  EXPECT_EQ(least[2], 1.0F);
  EXPECT_EQ(most[2], 2.0F);
}

TEST(Reduce, IntegersWrapAround) {
  const auto most = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::vector<std::int64_t>> ranks{{most, most}, {1, 2}};

  const auto sum = reduced<std::int64_t>(Dtype::int64, Reduction::sum, ranks);
  const auto product = reduced<std::int64_t>(Dtype::int64, Reduction::product, ranks);

  EXPECT_EQ(sum, (std::vector<std::int64_t>{-most - 1, -most}));
  EXPECT_EQ(product, (std::vector<std::int64_t>{most, -2}));
}

TEST(Reduce, BooleansAreAnyAndAll) {
  const std::vector<std::vector<std::uint8_t>> ranks{{0, 1, 0, 1}, {0, 0, 1, 1}};
  using Booleans = std::vector<std::uint8_t>;

  EXPECT_EQ(reduced<std::uint8_t>(Dtype::boolean, Reduction::sum, ranks), (Booleans{0, 1, 1, 1}));
  EXPECT_EQ(reduced<std::uint8_t>(Dtype::boolean, Reduction::maximum, ranks),
            (Booleans{0, 1, 1, 1}));
  EXPECT_EQ(reduced<std::uint8_t>(Dtype::boolean, Reduction::product, ranks),
            (Booleans{0, 0, 0, 1}));
  EXPECT_EQ(reduced<std::uint8_t>(Dtype::boolean, Reduction::minimum, ranks),
            (Booleans{0, 0, 0, 1}));
}

TEST(SliceOf, SlicesFollowEachOtherWithBordersOnCacheLines) {
  for (const std::size_t element : {1U, 2U, 4U, 8U}) {
    for (const std::size_t offset : {0U, 8U, 64U, 4104U}) {
      for (const std::size_t count : {0U, 1U, 17U, 1000U, 4099U}) {
        for (const int ranks : {1, 2, 3, 7}) {
          std::size_t next = 0;
          for (int rank = 0; rank < ranks; ++rank) {
            const Slice slice = slice_of(count, element, offset, rank, ranks);
            EXPECT_EQ(slice.begin, next);
            next += slice.count;
            const bool inner = next > 0 && next < count;
            EXPECT_TRUE(!inner || (offset + next * element) % 64 == 0);
          }
          EXPECT_EQ(next, count);
        }
      }
    }
  }
}

}  // namespace
}  // namespace yoke::shm
