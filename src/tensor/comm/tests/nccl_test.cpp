// The contract over NCCL with one rank on one card; several cards are the label gpu2's.

#include <cstdlib>

#include "group_contract.hpp"

namespace yoke::comm {
namespace {

TEST(Nccl, HoldsWhatACardCanHold) {
  World world = World::join({.backend = "nccl"});
  ASSERT_EQ(world.group().backend(), "nccl");
  at::Tensor tensor = at::full({4097}, 3.0, at::TensorOptions().device(world.device()));

  world.group().all_reduce(tensor);
  world.group().broadcast(tensor, 0);
  at::Tensor rows = at::empty({1, 4097}, tensor.options());
  world.group().all_gather(rows, tensor);
  world.group().barrier();

  EXPECT_TRUE(at::all(rows == 3.0).item<bool>());
}

TEST(Nccl, MeansAreWeighted) {
  World world = World::join({.backend = "nccl"});
  Group& group = world.group();
  at::Tensor bucket = group.empty_bucket(1000, at::TensorOptions().device(world.device()));
  bucket.fill_(8.0);
  const auto agreement = group.agree({.scale = 2.0, .count = 4.0});

  group.start_mean(bucket, *agreement)->wait();

  EXPECT_TRUE(at::all(bucket == 4.0).item<bool>());
}

TEST(Nccl, NothingIsReadOfARankWithoutRows) {
  World world = World::join({.backend = "nccl"});
  Group& group = world.group();
  at::Tensor bucket = group.empty_bucket(10, at::TensorOptions().device(world.device()));
  bucket.fill_(std::numeric_limits<double>::quiet_NaN());
  const auto agreement = group.agree({.scale = 0.0, .count = 0.0});

  group.start_mean(bucket, *agreement)->wait();

  EXPECT_TRUE(at::all(bucket == 0.0).item<bool>());
}

}  // namespace
}  // namespace yoke::comm
