// Ranks as forked processes over the real backends: the contract, and what happens when one of them
// fails.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>

#include "group_contract.hpp"
#include "yoke/comm/process_ranks.hpp"

namespace yoke::comm {
namespace {

using namespace std::chrono_literals;

WorldOptions options_for(const LoopbackPort& port, int rank, int size, const std::string& backend,
                         std::chrono::milliseconds timeout = 20s) {
  WorldOptions options;
  options.backend = backend;
  options.rank = options.local_rank = rank;
  options.world_size = options.local_world_size = size;
  options.master_port = port.number();
  if (rank == 0) options.store_descriptor = port.descriptor();
  options.device = at::kCPU;
  options.timeout = timeout;
  options.join_timeout = 20s;
  return options;
}

/// Forks `size` ranks; each runs `rank_main`, and its exit status is 0 where it returned without a
/// failed expectation.
std::vector<int> run_processes(int size, const std::function<void(int rank)>& rank_main) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        rank_main(rank);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
      std::fflush(nullptr);
      ::_exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  std::vector<int> statuses;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    statuses.push_back(status);
  }
  return statuses;
}

void expect_all_clean(const std::vector<int>& statuses) {
  for (std::size_t rank = 0; rank < statuses.size(); ++rank)
    EXPECT_EQ(statuses[rank], 0) << "rank " << rank;
}

class Processes : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(Processes, HoldTheContract) {
  const auto& [backend, size] = GetParam();
  const LoopbackPort port;
  expect_all_clean(run_processes(size, [&](int rank) {
    World world = World::join(options_for(port, rank, size, backend));
    EXPECT_EQ(world.group().backend(), backend);
    contract::check_all(world);
  }));
}

INSTANTIATE_TEST_SUITE_P(Backends, Processes,
                         ::testing::Combine(::testing::Values("gloo", "shm"),
                                            ::testing::Values(2, 3)));

class Faults : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Backends, Faults, ::testing::Values("gloo", "shm"));

TEST_P(Faults, AKilledRankIsNamedWellBeforeTheLimit) {
  const LoopbackPort port;
  const auto began = std::chrono::steady_clock::now();
  const auto statuses = run_processes(2, [&](int rank) {
    World world = World::join(options_for(port, rank, 2, GetParam(), 60s));
    at::Tensor tensor = at::ones({1000});
    world.group().all_reduce(tensor);
    if (rank == 1) ::raise(SIGKILL);
    try {
      for (int i = 0; i < 100; ++i) world.group().all_reduce(tensor);
      ADD_FAILURE() << "the killed rank went unnoticed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::peer_lost) << error.what();
      EXPECT_NE(error.message().find("rank 1"), std::string::npos) << error.what();
    }
  });
  EXPECT_EQ(statuses[0], 0);
  EXPECT_TRUE(WIFSIGNALED(statuses[1]));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 30s);
}

TEST_P(Faults, ARankThatStandsStillIsNamedAtTheLimit) {
  const LoopbackPort port;
  int release[2];
  ASSERT_EQ(::pipe(release), 0);
  const auto statuses = run_processes(2, [&](int rank) {
    World world = World::join(options_for(port, rank, 2, GetParam(), 1s));
    at::Tensor tensor = at::ones({1000});
    world.group().all_reduce(tensor);
    if (rank == 1) {
      char byte = 0;
      EXPECT_EQ(::read(release[0], &byte, 1), 1);  // until rank 0 has given up
      return;
    }
    try {
      world.group().all_reduce(tensor);
      ADD_FAILURE() << "the rank that stood still went unnoticed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::timeout) << error.what();
      EXPECT_NE(error.message().find("rank 1"), std::string::npos) << error.what();
      EXPECT_NE(error.message().find("all-reduce"), std::string::npos) << error.what();
    }
    EXPECT_EQ(::write(release[1], "x", 1), 1);
  });
  ::close(release[0]);
  ::close(release[1]);
  EXPECT_EQ(statuses[0], 0);
}

TEST(Joining, B033ASecondRankZeroIsToldWhoWasFirst) {
  const LoopbackPort port;
  const auto statuses = run_processes(3, [&](int process) {
    const int rank = process == 2 ? 1 : process;  // two processes say that they are rank 1
    try {
      World world = World::join(options_for(port, rank, 2, "gloo", 5s));
      world.group().barrier();
      if (rank == 0) return;
      ::_exit(10);
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("rank 1 joined twice (pid "), std::string::npos)
          << error.what();
      ::_exit(20);
    }
  });
  EXPECT_EQ(WEXITSTATUS(statuses[1]) + WEXITSTATUS(statuses[2]), 30)
      << "one of the two is served, the other refused";
}

TEST(Joining, B033MissingRanksAreListed) {
  const LoopbackPort port;
  expect_all_clean(run_processes(2, [&](int rank) {
    WorldOptions options = options_for(port, rank, 3, "gloo");
    options.join_timeout = 1s;
    try {
      const World world = World::join(options);
      ADD_FAILURE() << "three ranks met although two came";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::timeout);
      EXPECT_NE(error.message().find("missing rank 2"), std::string::npos) << error.what();
    }
  }));
}

TEST(Joining, RanksThatAskForDifferentBackendsAreToldSo) {
  const LoopbackPort port;
  expect_all_clean(run_processes(2, [&](int rank) {
    try {
      const World world = World::join(options_for(port, rank, 2, rank == 0 ? "gloo" : "shm"));
      ADD_FAILURE() << "joined by two backends";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument) << error.what();
      EXPECT_NE(error.message().find(rank == 0 ? "shm" : "gloo"), std::string::npos);
    }
  }));
}

TEST(Joining, B035AnInterfaceThatIsNoneIsQuotedWithThoseThatAre) {
  const LoopbackPort port;
  for (const char* wrong : {"^lo,docker", "127.0.0.1", "nosuch0"}) {
    expect_all_clean(run_processes(1, [&](int rank) {
      WorldOptions options = options_for(port, rank, 2, "gloo");
      options.gloo_interface = wrong;
      options.rank = rank;
      options.join_timeout = 1s;
      // The name is looked at before anybody is waited for, so rank 1 need not come: it is told by
      // its own copy.
      const pid_t other = ::fork();
      if (other == 0) {
        WorldOptions theirs = options_for(port, 1, 2, "gloo");
        theirs.gloo_interface = wrong;
        try {
          const World world = World::join(theirs);
        } catch (const Error&) {
        }
        ::_exit(0);
      }
      try {
        const World world = World::join(options);
        ADD_FAILURE() << wrong << " was taken for an interface";
      } catch (const Error& error) {
        EXPECT_NE(error.message().find(wrong), std::string::npos) << error.what();
        EXPECT_NE(error.hint().find("lo"), std::string::npos) << error.what();
      }
      ::waitpid(other, nullptr, 0);
    }));
  }
}

TEST(Checking, B017GlooRanksThatDisagreeSeeBothSidesWhereCallsAreChecked) {
  const LoopbackPort port;
  expect_all_clean(run_processes(2, [&](int rank) {
    WorldOptions options = options_for(port, rank, 2, "gloo");
    options.check_calls = true;
    World world = World::join(options);
    at::Tensor tensor = at::zeros({20, rank == 0 ? 10 : 11});
    try {
      world.group().all_reduce(tensor);
      ADD_FAILURE() << "different shapes were reduced";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      EXPECT_NE(error.message().find("20x10"), std::string::npos) << error.what();
      EXPECT_NE(error.message().find("20x11"), std::string::npos) << error.what();
    }
  }));
}

}  // namespace
}  // namespace yoke::comm
