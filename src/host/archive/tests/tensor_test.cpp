#include "yoke/archive/tensor.hpp"

#include <cstdint>
#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch.hpp"

namespace yoke::archive {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ArchiveDtype, EveryNameLeadsBackToItsDtype) {
  for (int i = 0; i <= static_cast<int>(Dtype::boolean); ++i) {
    const auto dtype = static_cast<Dtype>(i);
    EXPECT_EQ(dtype_from_name(name(dtype)), dtype);
    EXPECT_EQ(dtype_from_safetensors_name(safetensors_name(dtype)), dtype);
    EXPECT_EQ(dtype_from_storage_class(storage_class(dtype)), dtype);
  }
  EXPECT_EQ(dtype_from_name("complex64"), std::nullopt);
}

TEST(ArchiveTensor, ATransposedViewIsReadInItsOwnRowMajorOrder) {
  const auto numbers = counting<std::int32_t>(6);
  Tensor tensor = borrow(Dtype::int32, {3, 2}, numbers);

  tensor.strides = {1, 3};

  EXPECT_THAT(elements<std::int32_t>(tensor), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_FALSE(is_contiguous(tensor));
}

TEST(ArchiveTensor, AViewLargerThanOnePieceArrivesWhole) {
  const auto numbers = counting<std::int32_t>(1'200'000);
  Tensor tensor = borrow(Dtype::int32, {400'000}, numbers);
  tensor.strides = {3};
  std::size_t pieces = 0;
  std::vector<std::byte> bytes;

  visit_row_major(tensor, [&](std::span<const std::byte> piece) {
    ++pieces;
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  });

  ASSERT_EQ(bytes.size(), 400'000U * 4);
  EXPECT_EQ(pieces, 2U);  // 1,600,000 B in pieces of 1,048,576
  std::int32_t last = 0;
  std::memcpy(&last, bytes.data() + bytes.size() - 4, 4);
  EXPECT_EQ(last, 399'999 * 3);
}

TEST(ArchiveTensor, AScalarHasOneElementAndAnEmptyShapeNone) {
  const auto numbers = counting<float>(4);

  EXPECT_EQ(numel(borrow(Dtype::float32, {}, numbers)), 1);
  EXPECT_EQ(numel(borrow(Dtype::float32, {2, 0, 3}, numbers)), 0);
  EXPECT_TRUE(row_major_bytes(borrow(Dtype::float32, {2, 0, 3}, numbers)).empty());
}

TEST(ArchiveTensor, AnExpandedViewRepeatsItsElement) {
  const auto numbers = counting<std::int32_t>(2);
  Tensor tensor = borrow(Dtype::int32, {2, 3}, numbers);

  tensor.strides = {1, 0};

  EXPECT_EQ(defect(tensor), std::nullopt);
  EXPECT_THAT(elements<std::int32_t>(tensor), ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_EQ(reach(tensor).size(), 8U);
}

TEST(ArchiveTensor, AnUnsoundViewIsNamed) {
  const auto numbers = counting<float>(6);
  const auto problem = [&](std::vector<std::int64_t> shape, std::vector<std::int64_t> strides,
                           std::int64_t offset) {
    Tensor tensor = borrow(Dtype::float32, std::move(shape), numbers);
    tensor.strides = std::move(strides);
    tensor.offset = offset;
    return defect(tensor).value_or("sound");
  };
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

  EXPECT_EQ(problem({2, 3}, {3, 1}, 0), "sound");
  EXPECT_EQ(problem({2, 3}, {3, 1}, 1), "float32 [2, 3] reaches element 7 of a storage of 6");
  EXPECT_THAT(problem({2, 3}, {3}, 0), HasSubstr("2 sizes with 1 strides"));
  EXPECT_THAT(problem({-1}, {1}, 0), HasSubstr("size -1"));
  EXPECT_THAT(problem({2}, {-1}, 1), HasSubstr("stride -1"));
  EXPECT_THAT(problem({2}, {1}, -1), HasSubstr("offset -1"));
  EXPECT_THAT(problem({3, 3}, {kMost, kMost}, 0), HasSubstr("past 2^63"));
  EXPECT_THAT(problem({kMost, 3}, {0, 0}, 0), HasSubstr("more than 2^63"));
  EXPECT_THAT(problem({kMost}, {0}, 0),
              HasSubstr("reaches element 1"));  // its bytes would not fit an address
  EXPECT_EQ(problem({0, kMost, kMost}, {1, 1, 1}, 99), "sound");
}

}  // namespace
}  // namespace yoke::archive
