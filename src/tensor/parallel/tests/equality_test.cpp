// Ranks as threads; the same over processes stands in equality_procs_test.cpp.

#include "equality.hpp"

#include <gtest/gtest.h>

#include "yoke/comm/local_ranks.hpp"

namespace yoke::parallel {
namespace {

using equality::Setting;

std::vector<at::Tensor> train_ranks(int ranks, const Setting& setting) {
  std::vector<std::vector<at::Tensor>> results(static_cast<std::size_t>(ranks));
  comm::run_local_ranks(ranks, [&](comm::World& world) {
    results[static_cast<std::size_t>(world.rank())] = equality::train_rank(world, setting);
  });
  for (const auto& other : results) {
    for (std::size_t i = 0; i < other.size(); ++i) {
      EXPECT_TRUE(at::equal(other[i], results[0][i])) << "ranks ended with different bits";
    }
  }
  return results[0];
}

class Equality : public ::testing::TestWithParam<std::tuple<int, Setting>> {};

TEST_P(Equality, RanksTrainAsOneProcessOnTheJoinedBatch) {
  const auto& [ranks, setting] = GetParam();
  const auto alone = equality::train_alone(setting);

  const auto together = train_ranks(ranks, setting);
  const auto again = train_ranks(ranks, setting);

  EXPECT_LT(equality::difference(together, alone), setting.tolerance);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_TRUE(at::equal(together[i], again[i])) << "two runs gave different bits";
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Equality,
                         ::testing::Combine(::testing::Values(1, 2, 4),
                                            ::testing::ValuesIn(equality::kSettings)));

}  // namespace
}  // namespace yoke::parallel
