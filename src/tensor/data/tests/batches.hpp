#pragma once

#include <vector>

#include <gtest/gtest.h>

#include "yoke/data/data_loader.hpp"

namespace yoke::data {

/// All that is left of an epoch; every batch is kept.
inline std::vector<Batch> batches_of(DataLoader& loader, std::int64_t epoch) {
  std::vector<Batch> batches;
  for (const Batch& batch : loader.epoch(epoch)) batches.push_back(batch);
  return batches;
}

inline std::vector<std::int64_t> indices_of(const std::vector<Batch>& batches) {
  std::vector<std::int64_t> all;
  for (const Batch& batch : batches) {
    all.insert(all.end(), batch.indices.begin(), batch.indices.end());
  }
  return all;
}

inline void expect_equal(const Batch& left, const Batch& right) {
  EXPECT_EQ(left.indices, right.indices);
  EXPECT_EQ(left.epoch, right.epoch);
  EXPECT_EQ(left.index, right.index);
  EXPECT_EQ(left.global_rows, right.global_rows);
  EXPECT_TRUE(at::equal(left.input, right.input))
      << "epoch " << left.epoch << " step " << left.index;
  EXPECT_TRUE(at::equal(left.target, right.target))
      << "epoch " << left.epoch << " step " << left.index;
}

inline void expect_equal(const std::vector<Batch>& left, const std::vector<Batch>& right) {
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i) expect_equal(left[i], right[i]);
}

}  // namespace yoke::data
