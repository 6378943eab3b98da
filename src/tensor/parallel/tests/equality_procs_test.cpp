// N real processes over Gloo and over shared memory against one process on the joined batch.

#include <gtest/gtest.h>

#include "equality.hpp"
#include "yoke/comm/process_ranks.hpp"
#include "yoke/core/text.hpp"

namespace yoke::parallel {
namespace {

class ProcessEquality : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(ProcessEquality, RanksTrainAsOneProcessOnTheJoinedBatch) {
  const auto& [backend, ranks] = GetParam();
  const auto failures =
      comm::run_process_ranks(ranks, {.backend = backend}, [](comm::World& world) {
        for (const auto& setting : equality::kSettings) {
          const auto alone = equality::train_alone(setting);
          const auto together = equality::train_rank(world, setting);
          const auto again = equality::train_rank(world, setting);
          const double difference = equality::difference(together, alone);
          if (!(difference < setting.tolerance))
            return core::text("differs by ", difference, " from one process");
          if (equality::difference(together, again) != 0.0)
            return std::string("two runs gave different bits");
        }
        return std::string();
      });
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

INSTANTIATE_TEST_SUITE_P(Backends, ProcessEquality,
                         ::testing::Combine(::testing::Values("gloo", "shm"),
                                            ::testing::Values(1, 2, 4)));

}  // namespace
}  // namespace yoke::parallel
