#include <filesystem>
#include <string>

#include "supervise_scene.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"

namespace yoke::launch {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Restarts = SuperviseScene;

TEST_F(Restarts, AllRanksAreStartedAgainAfterAFailure) {
  const Outcome outcome =
      play({"if-attempt:0,wait,exit:0", "if-attempt:0,exit:7,exit:0"}, {.restart = {.limit = 3}});

  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_FALSE(outcome.root_cause);
  ASSERT_EQ(outcome.earlier.size(), 1U);
  EXPECT_EQ(outcome.earlier[0].rank, 1);
  EXPECT_EQ(outcome.earlier[0].exit_code, 7);
  EXPECT_THAT(words(), AllOf(HasSubstr("attempt 0 failed: rank 1"), HasSubstr("restart 1 of 3")));
}

TEST_F(Restarts, B032TheLimitIsOfAttemptsAndEveryRankSeesTheCount) {
  const auto folder = std::filesystem::temp_directory_path() / job_;
  const std::string script = "env:TORCHELASTIC_RESTART_COUNT,env:TORCHELASTIC_MAX_RESTARTS,exit:7";

  const Outcome outcome = play(
      {script, script},
      {.restart = {.limit = 1}, .output = {.folder = folder, .redirects = {.all = Streams::both}}});

  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.earlier.size(), 1U);
  for (const int rank : {0, 1}) {
    for (const int attempt : {0, 1}) {
      const auto log =
          folder / job_ / core::text("attempt_", attempt) / std::to_string(rank) / "stdout.log";
      EXPECT_THAT(core::read_file(log),
                  HasSubstr(core::text("TORCHELASTIC_RESTART_COUNT=", attempt, "\n")));
      EXPECT_THAT(core::read_file(log), HasSubstr("TORCHELASTIC_MAX_RESTARTS=1\n"));
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder / job_ / "attempt_2"));
  std::filesystem::remove_all(folder);
}

TEST_F(Restarts, B032ALimitOfZeroIsOneAttempt) {
  const Outcome outcome = play({"exit:7"});

  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(outcome.earlier.empty());
}

TEST_F(Restarts, WithoutProgressTheExitCodeIsFour) {
  const Outcome outcome =
      play({"steps:5,kill:9"}, {.restart = {.limit = 50, .without_progress = 2}});

  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_EQ(outcome.earlier.size(), 1U);
  EXPECT_THAT(words(), HasSubstr("2 attempts in a row came no further beyond step 5"));
}

TEST_F(Restarts, CodesThatSayNeverAreKept) {
  EXPECT_EQ(play({"exit:4"}, {.restart = {.limit = 3}}).exit_code, 4);
  EXPECT_EQ(play({"exit:2"}, {.restart = {.limit = 3}}).exit_code, 2);
}

TEST_F(Restarts, TheFailureFileNamesTheAttemptsBefore) {
  const auto file = std::filesystem::temp_directory_path() / (job_ + ".json");

  play({"if-attempt:0,exit:7,exit:9"}, {.restart = {.limit = 1}, .failure_file = file});

  const core::Json whole = core::parse_json(core::read_file(file), file.string());
  std::filesystem::remove(file);
  EXPECT_EQ(whole["root_cause"]["exit_code"], 9);
  EXPECT_EQ(whole["earlier_attempts"][0]["exit_code"], 7);
}

TEST_F(Restarts, ARankThatIsKilledTwiceIsLeftOutAndTheRestGoOn) {
  const std::string dies = "if-attempt:0,kill:9,if-attempt:1,kill:9,exit:0";

  const Outcome outcome = play({"if-attempt:0,wait,if-attempt:1,wait,env:WORLD_SIZE,exit:0", dies},
                               {.fewest_ranks = 1, .restart = {.limit = 5}});

  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.earlier.size(), 2U);
  EXPECT_THAT(words(), HasSubstr("going on with 1 of 2 ranks"));
}

}  // namespace
}  // namespace yoke::launch
