#include "yoke/comm/world.hpp"

#include <gtest/gtest.h>

#include "yoke/core/environment.hpp"
#include "yoke/core/error.hpp"

namespace yoke::comm {
namespace {

TEST(WorldOptions, TakeTheRankFactsOfALauncher) {
  const core::RankFacts facts = core::rank_facts({{"RANK", "3"},
                                                  {"WORLD_SIZE", "4"},
                                                  {"LOCAL_RANK", "1"},
                                                  {"LOCAL_WORLD_SIZE", "2"},
                                                  {"MASTER_ADDR", "node0"},
                                                  {"MASTER_PORT", "29501"},
                                                  {"TORCHELASTIC_RUN_ID", "job7"},
                                                  {"TORCHELASTIC_USE_AGENT_STORE", "True"}});

  const WorldOptions options = World::options_from(facts);

  EXPECT_EQ(options.rank, 3);
  EXPECT_EQ(options.world_size, 4);
  EXPECT_EQ(options.local_rank, 1);
  EXPECT_EQ(options.master_address, "node0");
  EXPECT_EQ(options.master_port, 29501);
  EXPECT_TRUE(options.store_served_by_agent);
}

TEST(World, OneRankNeedsNoPort) {
  const World world = World::join({.device = at::kCPU});

  EXPECT_EQ(world.size(), 1);
  EXPECT_TRUE(world.is_main());
}

TEST(World, AnUnknownBackendIsNamedWithTheNearest) {
  try {
    (void)World::join({.backend = "glo"});
    FAIL() << "joined by an unknown backend";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_EQ(error.hint(), "did you mean gloo?");
  }
}

TEST(World, ARankOutsideTheWorldIsRefused) {
  EXPECT_THROW((void)World::join({.rank = 2, .world_size = 2}), Error);
}

TEST(World, SeveralRanksWithoutAPortAreRefused) {
  EXPECT_THROW((void)World::join({.rank = 0, .world_size = 2}), Error);
}

}  // namespace
}  // namespace yoke::comm
