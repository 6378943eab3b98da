#include "yoke/train/metrics.hpp"

#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/comm/local_ranks.hpp"
#include "yoke/core/error.hpp"
#include "yoke/train/best.hpp"

namespace yoke::train {
namespace {

using comm::run_local_ranks;
using comm::World;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

at::Tensor number(double value) { return at::full({}, value, at::kDouble); }

TEST(Means, AreExactOverUnequalRanks) {
  run_local_ranks(2, [](World& world) {
    Means means;
    if (world.is_main()) {
      means.add("loss", number(1.0), 1);
    } else {
      means.add("loss", number(5.0), 1);
      means.add("loss", number(10.0), 2);
    }

    const NamedValues values = means.over(world.host_group());

    EXPECT_THAT(values, ElementsAre(Pair("loss", 4.0)));  // (1 + 5 + 10) / 4, not (1 + 5) / 2
  });
}

TEST(Means, RankWithoutSamplesTakesPart) {
  run_local_ranks(3, [](World& world) {
    Means means;
    if (world.rank() == 1) means.add("loss", number(6.0), 3);

    EXPECT_THAT(means.over(world.host_group()), ElementsAre(Pair("loss", 2.0)));
  });
}

TEST(Means, NamesInAnotherOrderAreMatchedByName) {
  run_local_ranks(2, [](World& world) {
    Means means;
    const std::vector<std::string> names =
        world.is_main() ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{"b", "a"};
    for (const std::string& name : names) means.add(name, number(name == "a" ? 2.0 : 8.0), 2);

    EXPECT_THAT(means.over(world.host_group()), ElementsAre(Pair("a", 1.0), Pair("b", 4.0)));
  });
}

TEST(Means, B019NamesThatOnlySomeRanksHaveAreNamedOnEveryRank) {
  std::mutex mutex;
  std::vector<std::string> messages;

  run_local_ranks(2, [&](World& world) {
    Means means;
    means.add("loss", number(1.0), 1);
    means.add(world.is_main() ? "acc_cat" : "acc_dog", number(1.0), 1);
    try {
      (void)means.over(world.host_group());
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      messages.push_back(error.message());
    }
  });

  ASSERT_EQ(messages.size(), 2U);
  for (const std::string& message : messages) {
    EXPECT_THAT(message, AllOf(HasSubstr("rank 0 has [loss, acc_cat]"),
                               HasSubstr("rank 1 has [loss, acc_dog]")));
  }
}

TEST(Means, SumsOfSinglePrecisionAreAddedInDouble) {
  Means means;
  const auto group = comm::alone_group();
  for (int i = 0; i < 3; ++i) means.add("x", at::full({}, 16'777'217.0 / 3, at::kFloat), 1);

  const NamedValues values = means.over(*group);

  EXPECT_DOUBLE_EQ(values[0].second, static_cast<double>(static_cast<float>(16'777'217.0 / 3)));
}

TEST(Accuracy, CountsRowsWhoseLargestScoreIsAtTheTarget) {
  const at::Tensor scores = at::tensor({0.1F, 0.9F, 0.8F, 0.2F, 0.3F, 0.7F}).reshape({3, 2});

  const auto sums = accuracy(scores, at::tensor({1, 1, 1}, at::kLong));

  ASSERT_EQ(sums.size(), 1U);
  EXPECT_EQ(sums[0].sum.item<double>(), 2.0);
  EXPECT_EQ(sums[0].count, 3.0);
}

TEST(Best, CountsEvaluationsSinceTheLastGain) {
  Best best({.metric = "loss", .min_delta = 0.1});

  EXPECT_TRUE(best.update({{"loss", 1.0}}));
  EXPECT_FALSE(best.update({{"loss", 0.95}}));  // a gain below min_delta is none
  EXPECT_FALSE(best.update({{"loss", std::numeric_limits<double>::quiet_NaN()}}));
  EXPECT_EQ(best.evaluations_since(), 2);
  EXPECT_TRUE(best.update({{"loss", 0.8}}));
  EXPECT_EQ(best.evaluations_since(), 0);
}

TEST(Best, HigherIsBetterWhereSaidSo) {
  Best best({.metric = "accuracy", .higher_is_better = true});

  EXPECT_TRUE(best.update({{"accuracy", 0.2}}));
  EXPECT_TRUE(best.update({{"accuracy", 0.3}}));
  EXPECT_FALSE(best.update({{"accuracy", 0.3}}));
  EXPECT_DOUBLE_EQ(*best.value(), 0.3);
}

}  // namespace
}  // namespace yoke::train
