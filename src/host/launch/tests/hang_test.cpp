#include <string>

#include "supervise_scene.hpp"

namespace yoke::launch {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Hang = SuperviseScene;

TEST_F(Hang, ARankThatDoesNotComeIsNamedWithItsStackBeforeItIsEnded) {
  const Outcome outcome =
      play({"reduce:12,wait", "steps:12,wait"}, {.grace = 1s,
                                                 .max_time = 60s,
                                                 .hang = HangWatch::Options{.limit = 1s},
                                                 .stop_on_hang = true});

  EXPECT_EQ(outcome.exit_code, 1);
  ASSERT_TRUE(outcome.root_cause);
  EXPECT_EQ(outcome.root_cause->rank, 1);
  EXPECT_EQ(outcome.root_cause->code, "timeout");
  EXPECT_THAT(outcome.root_cause->message, HasSubstr("rank 1 did not come to all-reduce #3"));
  EXPECT_THAT(words(),
              AllOf(HasSubstr("hang: rank 1 did not come"), HasSubstr("where rank 1 (pid "),
                    HasSubstr("rank_actor: S (sleeping)")));
}

TEST_F(Hang, AStoppedRankIsNamed) {
  const Outcome outcome =
      play({"wait", "stop-self"}, {.grace = 1s,
                                   .max_time = 60s,
                                   .hang = HangWatch::Options{.stopped_after = 1s},
                                   .stop_on_hang = true});

  ASSERT_TRUE(outcome.root_cause);
  EXPECT_EQ(outcome.root_cause->rank, 1);
  EXPECT_THAT(words(), HasSubstr("rank 1 is stopped (SIGSTOP, or a debugger)"));
}

}  // namespace
}  // namespace yoke::launch
