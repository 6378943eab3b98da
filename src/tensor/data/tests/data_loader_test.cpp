#include "yoke/data/data_loader.hpp"

#include <gtest/gtest.h>

#include "yoke/data/synthetic.hpp"

namespace yoke::data {
namespace {

TEST(DataLoader, GivesEachSampleOncePerEpoch) {
  DataLoader loader(Synthetic({.length = 100}), Placement{}, {.batch_size = 32, .seed = 7});

  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> seen;
  for (const Batch& batch : loader.epoch(0)) {
    rows.push_back(batch.rows());
    seen.insert(seen.end(), batch.indices.begin(), batch.indices.end());
  }

  std::ranges::sort(seen);
  EXPECT_EQ(rows, (std::vector<std::int64_t>{32, 32, 32, 4}));
  for (std::int64_t i = 0; i < 100; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

}  // namespace
}  // namespace yoke::data
