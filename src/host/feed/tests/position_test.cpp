#include "yoke/feed/position.hpp"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "errors.hpp"

namespace yoke::feed {
namespace {

using ::testing::HasSubstr;

constexpr Agreement kZero{.seed = 7,
                          .length = 8,
                          .batch_size = 2,
                          .world_size = 3,
                          .drop_last = 0,
                          .shuffle = 1,
                          .sharding = 0,
                          .fingerprint = 99};

TEST(Agreement, IsFoundBetweenRanksThatPassTheSame) {
  const std::vector<Agreement> ranks(3, kZero);

  EXPECT_NO_THROW(require_agreement(ranks));
  EXPECT_NO_THROW(require_agreement({}));
}

TEST(Agreement, B058NamesTheRankAndBothSeeds) {
  std::vector<Agreement> ranks(3, kZero);
  ranks[2].seed = 8;

  const Error error = error_of([&] { require_agreement(ranks); });

  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_EQ(error.message(), "start loading: the seed is 7 on rank 0 and 8 on rank 2");
}

TEST(Agreement, B058NamesAListingThatDiffers) {
  std::vector<Agreement> ranks(2, kZero);
  ranks[1].fingerprint = 98;

  const Error error = error_of([&] { require_agreement(ranks); });

  EXPECT_THAT(error.message(), HasSubstr("fingerprint is 99 on rank 0 and 98 on rank 1"));
}

TEST(Agreement, NoticesEachNumber) {
  for (std::int64_t Agreement::* number :
       {&Agreement::length, &Agreement::batch_size, &Agreement::world_size, &Agreement::drop_last,
        &Agreement::shuffle, &Agreement::sharding}) {
    std::vector<Agreement> ranks(2, kZero);
    ranks[1].*number += 1;

    EXPECT_THROW(require_agreement(ranks), Error);
  }
}

}  // namespace
}  // namespace yoke::feed
