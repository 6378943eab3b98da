// Our torch_compat order and sharding beside PyTorch's own, in one run. The interpreter with torch
// is argument 1; where it is missing the tests are skipped with that reason.

#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "temporary_folder.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"
#include "yoke/feed/order.hpp"
#include "yoke/feed/shard.hpp"

namespace yoke::feed {
namespace {

using Indices = std::vector<std::int64_t>;

std::string python;  // set by main

// What the program prints; fails the test if it does not end well.
std::string output_of(const std::string& program) {
  const TemporaryFolder folder;
  core::write_atomically(folder / "program.py", program);
  const std::string command =
      core::text('"', python, "\" \"", (folder / "program.py").string(), '"');
  std::string output;
  FILE* pipe = ::popen(command.c_str(), "r");
  std::string block(1 << 16, '\0');
  while (const std::size_t count = std::fread(block.data(), 1, block.size(), pipe)) {
    output.append(block, 0, count);
  }
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return output;
}

// One list of numbers a line.
std::vector<Indices> lists_in(const std::string& output) {
  std::vector<Indices> lists;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    Indices list;
    for (std::int64_t number = 0; numbers >> number;) list.push_back(number);
    lists.push_back(std::move(list));
  }
  return lists;
}

class PyTorch : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(python)) {
      GTEST_SKIP() << "no Python with torch at " << python << ": run tools/setup --full";
    }
  }
};

TEST_F(PyTorch, ShufflesAsTorchPermutationDoes) {
  const std::vector<std::int64_t> lengths{0, 1, 2, 8, 1000, 65'537, 1'000'003};
  const std::uint64_t seed =
      (std::uint64_t{1} << 32) + 5;  // beyond the 32 bits that the generator takes

  const auto theirs = lists_in(output_of(core::text(R"(
import torch
for epoch, n in enumerate([0, 1, 2, 8, 1000, 65537, 1000003]):
    generator = torch.Generator().manual_seed()",
                                                    seed, R"( + epoch)
    print(*torch.randperm(n, generator=generator).tolist())
)")));

  ASSERT_EQ(theirs.size(), lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto ours = torch_permutation(seed, static_cast<std::int64_t>(i), lengths[i]);
    EXPECT_TRUE(ours == theirs[i]) << "length " << lengths[i];
  }
}

TEST_F(PyTorch, DistributesAsTorchShardingDoes) {
  const auto theirs = lists_in(output_of(R"(
from torch.utils.data.distributed import DistributedSampler
for n in (3, 8, 10, 101):
    for world in (1, 2, 4, 7):
        for drop in (False, True):
            for rank in range(world):
                sampler = DistributedSampler(range(n), world, rank, shuffle=True, seed=5, drop_last=drop)
                sampler.set_epoch(3)
                if n >= world or not drop: print(*sampler)
)"));

  std::size_t next = 0;
  for (const std::int64_t length : {3, 8, 10, 101}) {
    const Order order(Shuffle::torch_compat, 5, 3, length);
    for (const int world_size : {1, 2, 4, 7}) {
      for (const bool drop_last : {false, true}) {
        if (length < world_size && drop_last) continue;  // B057: an error here, empty lists there
        for (int rank = 0; rank < world_size; ++rank) {
          const Plan plan({.length = length,
                           .rank = rank,
                           .world_size = world_size,
                           .drop_last = drop_last,
                           .sharding = Sharding::torch_compat});
          Indices ours;
          for (std::int64_t step = 0; step < plan.steps(); ++step) {
            ours.push_back(order[plan.position(step, 0)]);
          }
          ASSERT_LT(next, theirs.size());
          EXPECT_EQ(ours, theirs[next++]) << length << ' ' << world_size << ' ' << rank;
        }
      }
    }
  }
  EXPECT_EQ(next, theirs.size());
}

}  // namespace
}  // namespace yoke::feed

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  yoke::feed::python = argc > 1 ? argv[1] : "none given";
  return RUN_ALL_TESTS();
}
