#include "group_contract.hpp"

#include "yoke/comm/local_ranks.hpp"

namespace yoke::comm {
namespace {

class LocalContract : public ::testing::TestWithParam<int> {};

TEST_P(LocalContract, HoldsForRanksAsThreads) { run_local_ranks(GetParam(), contract::check_all); }

INSTANTIATE_TEST_SUITE_P(Sizes, LocalContract, ::testing::Values(1, 2, 3, 4, 7));

TEST(Alone, HoldsForOneRank) {
  World world = World::of(alone_group());
  contract::check_all(world);
}

TEST(Local, ARankThatThrowsIsTheErrorThatComesOut) {
  try {
    run_local_ranks(3, [](World& world) {
      if (world.rank() == 1) throw std::runtime_error("bad label 11 in sample 42");
      at::Tensor token = at::zeros({1});
      world.group().all_reduce(token);
    });
    FAIL() << "the error of rank 1 was lost";
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "bad label 11 in sample 42");
  }
}

TEST(Local, B017RanksThatDisagreeSeeBothSides) {
  std::vector<std::string> messages(2);
  run_local_ranks(2, [&messages](World& world) {
    at::Tensor tensor = at::zeros({20, world.rank() == 0 ? 10 : 11});
    try {
      world.group().all_reduce(tensor);
    } catch (const Error& error) {
      messages[static_cast<std::size_t>(world.rank())] = error.what();
    }
  });
  for (const std::string& message : messages) {
    EXPECT_NE(message.find("20x10"), std::string::npos) << message;
    EXPECT_NE(message.find("20x11"), std::string::npos) << message;
  }
}

TEST(Local, ARankThatStaysAwayIsNamedWithinTheLimit) {
  std::string message;
  run_local_ranks(2,
                  [&message](World& world) {
                    at::Tensor token = at::zeros({1});
                    if (world.rank() == 1) {
                      // Comes only after the other has given up.
                      EXPECT_THROW(
                          {
                            while (true) world.group().receive(token, 0);
                          },
                          Error);
                      return;
                    }
                    try {
                      world.group().all_reduce(token);
                    } catch (const Error& error) {
                      message = error.what();
                    }
                  },
                  {.timeout = std::chrono::milliseconds(200)});
  EXPECT_NE(message.find("rank 1"), std::string::npos) << message;
}

}  // namespace
}  // namespace yoke::comm
