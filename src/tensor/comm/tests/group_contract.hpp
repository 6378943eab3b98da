#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "yoke/comm/group.hpp"
#include "yoke/comm/world.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

/// What every group must do, whatever its backend: each check is collective and compares with a
/// formula in sight.
namespace yoke::comm::contract {

inline const std::vector<at::ScalarType> kDtypes{at::kFloat, at::kDouble,   at::kLong,
                                                 at::kInt,   at::kBFloat16, at::kHalf};
inline const std::vector<std::int64_t> kCounts{0, 1, 2, 3, 17, 4097};

/// [count]: rank + 1 + (index modulo 3): small integers, exact in every dtype.
inline at::Tensor numbers(int rank, std::int64_t count, at::ScalarType dtype) {
  return (at::arange(count, at::kLong).remainder(3) + rank + 1).to(dtype);
}

inline void check_all_reduce(World& world) {
  Group& group = world.group();
  const int n = group.size();
  for (const auto dtype : kDtypes) {
    for (const std::int64_t count : kCounts) {
      at::Tensor sum = numbers(group.rank(), count, dtype);
      at::Tensor least = sum.clone();
      at::Tensor most = sum.clone();

      group.all_reduce(sum);
      group.all_reduce(least, ReduceOp::minimum);
      group.all_reduce(most, ReduceOp::maximum);

      const at::Tensor base = at::arange(count, at::kLong).remainder(3);
      EXPECT_TRUE(at::equal(sum.to(at::kLong), base * n + n * (n + 1) / 2)) << shape_text(sum);
      EXPECT_TRUE(at::equal(least.to(at::kLong), base + 1)) << shape_text(least);
      EXPECT_TRUE(at::equal(most.to(at::kLong), base + n)) << shape_text(most);
    }
  }
}

/// Ranks may hold a tensor in another order in memory than the others.
inline void check_memory_orders(World& world) {
  Group& group = world.group();
  const auto format =
      group.rank() == 0 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  at::Tensor tensor = at::arange(2 * 3 * 2 * 2, at::kFloat).view({2, 3, 2, 2}).contiguous(format);
  const at::Tensor expected = tensor * group.size();

  group.all_reduce(tensor);

  EXPECT_TRUE(at::equal(tensor, expected));
}

inline void check_moves(World& world) {
  Group& group = world.group();
  const int n = group.size();
  const int rank = group.rank();
  for (const auto dtype : kDtypes) {
    for (const std::int64_t count : kCounts) {
      const int root = n - 1;
      at::Tensor tensor = numbers(rank, count, dtype);
      group.broadcast(tensor, root);
      EXPECT_TRUE(at::equal(tensor, numbers(root, count, dtype)));

      at::Tensor rows = at::empty({n, count}, dtype);
      group.all_gather(rows, numbers(rank, count, dtype));
      for (int r = 0; r < n; ++r) EXPECT_TRUE(at::equal(rows[r], numbers(r, count, dtype)));

      at::Tensor mine = at::empty({count}, dtype);
      std::vector<at::Tensor> parts;
      for (int r = 0; r < n; ++r) parts.push_back(numbers(rank + r, count, dtype));
      group.reduce_scatter(mine, at::stack(parts));
      const at::Tensor base = at::arange(count, at::kLong).remainder(3);
      EXPECT_TRUE(at::equal(mine.to(at::kLong), (base + 1 + rank) * n + n * (n - 1) / 2));

      at::Tensor exchanged = at::empty({n, count}, dtype);
      std::vector<at::Tensor> letters;
      for (int to = 0; to < n; ++to) letters.push_back(numbers(10 * rank + to, count, dtype));
      group.all_to_all(exchanged, at::stack(letters));
      for (int from = 0; from < n; ++from) {
        EXPECT_TRUE(at::equal(exchanged[from], numbers(10 * from + rank, count, dtype)));
      }
    }
  }
}

inline void check_send_receive(World& world) {
  Group& group = world.group();
  if (group.size() == 1) {
    EXPECT_EQ(group.supports(Op::send_receive), group.backend() != "alone");
    return;
  }
  if (group.rank() == 0) {
    group.send(numbers(5, 100, at::kFloat), 1);
  } else if (group.rank() == 1) {
    at::Tensor got = at::empty({100}, at::kFloat);
    group.receive(got, 0);
    EXPECT_TRUE(at::equal(got, numbers(5, 100, at::kFloat)));
  }
  group.barrier();
}

inline void check_strided(World& world) {
  Group& group = world.group();
  at::Tensor whole = at::full({4, 6}, static_cast<double>(group.rank() + 1), at::kFloat);
  at::Tensor columns = whole.narrow(1, 0, 3);

  group.all_reduce(columns);

  const float sum = static_cast<float>(group.size() * (group.size() + 1)) / 2.0F;
  EXPECT_TRUE(at::all(columns == sum).item<bool>());
  EXPECT_TRUE(at::all(whole.narrow(1, 3, 3) == static_cast<float>(group.rank() + 1)).item<bool>());
}

inline void check_mean(World& world) {
  Group& group = world.group();
  const int n = group.size();
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    for (const std::int64_t count : {std::int64_t{1}, std::int64_t{1000}}) {
      at::Tensor bucket = group.empty_bucket(count, at::TensorOptions().dtype(dtype));
      // rank r brings scale r and count r; rank 0 brings nothing and must not be read
      bucket.fill_(group.rank() == 0 ? std::numeric_limits<double>::quiet_NaN()
                                     : 1.0 + group.rank());
      const auto weight = static_cast<double>(group.rank());
      const auto agreement = group.agree({.scale = weight, .count = weight});

      auto first = group.start_mean(bucket, *agreement);
      first->wait();

      double sum = 0;
      double total = 0;
      for (int r = 1; r < n; ++r) {
        sum += r * (1.0 + r);
        total += r;
      }
      const double expected = n == 1 ? 0.0 : sum / total;
      EXPECT_NEAR(bucket[0].item<double>(), expected, 1e-6 * (1 + expected));
      EXPECT_TRUE(at::all(bucket == bucket[0]).item<bool>());
      EXPECT_DOUBLE_EQ(agreement->total_count(), total);
    }
  }
}

inline void check_bytes(World& world) {
  Group& group = world.host_group();
  const std::string mine(static_cast<std::size_t>(group.rank()) * 3,
                         static_cast<char>('a' + group.rank()));

  const std::vector<std::string> all = group.all_gather_bytes(mine);

  for (int r = 0; r < group.size(); ++r) {
    EXPECT_EQ(all[static_cast<std::size_t>(r)],
              std::string(static_cast<std::size_t>(r) * 3, static_cast<char>('a' + r)));
  }
}

inline void check_all(World& world) {
  check_all_reduce(world);
  check_memory_orders(world);
  check_moves(world);
  check_send_receive(world);
  check_strided(world);
  check_mean(world);
  check_bytes(world);
  at::Tensor token = at::ones({1});
  EXPECT_THROW(world.group().broadcast(token, world.size()), Error);
  world.group().barrier();
}

}  // namespace yoke::comm::contract
