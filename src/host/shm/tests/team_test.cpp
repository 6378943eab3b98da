#include <gtest/gtest.h>

#include "ranks.hpp"

namespace yoke::shm {
namespace {

using testing::run_threads;

TEST(Team, TwoRanksAverageABufferInPlace) {
  constexpr std::size_t kCount = 100'003;
  std::vector<std::vector<float>> results(2);

  const auto outcomes = run_threads(2, [&](Team& team) {
    SharedBuffer buffer = team.allocate(kCount * sizeof(float));
    auto* const values = reinterpret_cast<float*>(buffer.data());
    for (std::size_t i = 0; i < kCount; ++i) {
      values[i] = static_cast<float>(i + static_cast<std::size_t>(team.rank()));
    }
    team.wait(team.start_all_reduce(buffer, 0, {.count = kCount}, Reduction::mean));
    results[static_cast<std::size_t>(team.rank())].assign(values, values + kCount);
  });

  for (const auto& outcome : outcomes) EXPECT_FALSE(outcome.has_value()) << outcome->what();
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(results[0][i], static_cast<float>(i) + 0.5F);
    ASSERT_EQ(results[1][i], results[0][i]);
  }
}

}  // namespace
}  // namespace yoke::shm
