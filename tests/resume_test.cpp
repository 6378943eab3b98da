// Runs that are stopped or killed, and go on from their checkpoints.

#include <signal.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scene.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"

namespace yoke::whole {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using core::ChildResult;
using core::Json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kEpochs = 100;
constexpr int kStepsPerEpoch = 12;  // 48 images, 4 a step

/// Two ranks on small images: a second or more of training, so that a signal finds it under way.
class Resume : public Scene {
 protected:
  Resume() { write_images(folder() / "images"); }

  [[nodiscard]] std::vector<std::string> words(const std::string& out,
                                               const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"train",
                                 "--data",
                                 (folder() / "images").string(),
                                 "--ranks",
                                 "2",
                                 "--epochs",
                                 std::to_string(kEpochs),
                                 "--batch-size",
                                 "2",
                                 "--lr",
                                 "0.05",
                                 "--seed",
                                 "7",
                                 "--eval-every",
                                 "20",
                                 "--out",
                                 (folder() / out).string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  [[nodiscard]] std::string path(const std::string& run) const { return (folder() / run).string(); }
  [[nodiscard]] std::vector<std::string> checkpoints(const std::string& run) const {
    return files_in(folder() / run / "checkpoints");
  }
  [[nodiscard]] std::string weights(const std::string& run) const {
    return core::read_file(folder() / run / "model.safetensors");
  }

  /// The weights of a run that nothing disturbed, trained once for all tests.
  const std::string& undisturbed_weights() {
    static const std::string bytes = [&] {
      const ChildResult result = yoke(words("undisturbed"));
      EXPECT_EQ(result.exit_code, 0) << result.err;
      return weights("undisturbed");
    }();
    return bytes;
  }

  /// Starts a run and waits until it has left a checkpoint.
  [[nodiscard]] std::unique_ptr<core::Child> start_and_wait(
      const std::string& run, const std::vector<std::string>& more = {}) {
    auto job = start(words(run, more));
    EXPECT_TRUE(job->wait_for("epoch 1/", 60s));
    return job;
  }

  void go_on_to_the_same_bits(const std::string& run) {
    const ChildResult rest = yoke({"train", "--resume", path(run)});
    ASSERT_EQ(rest.exit_code, 0) << rest.err;
    EXPECT_THAT(rest.err, HasSubstr("going on from " + path(run) + "/checkpoints/step-"));
    EXPECT_EQ(weights(run), undisturbed_weights());
    EXPECT_THAT(left_behind(), IsEmpty());
  }
};

TEST_F(Resume, B029StoppedByTermEndsWith143AndGoesOn) {
  auto job = start_and_wait("a");

  job->signal(SIGTERM);
  const ChildResult stopped = job->wait();

  EXPECT_EQ(stopped.exit_code, 128 + SIGTERM) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("stopped by SIGTERM at step "));
  EXPECT_THAT(left_behind(), IsEmpty());
  go_on_to_the_same_bits("a");
}

TEST_F(Resume, B030OneRankThatIsToldStopsAllAtOneStep) {
  for (const int signal : {SIGUSR1, SIGTERM}) {
    SCOPED_TRACE(signal);
    fs::remove_all(folder() / "a");
    auto job = start_and_wait("a", {"--checkpoint-every", "90000"});
    const std::vector<pid_t> rank = living_with("RANK=1");
    ASSERT_THAT(rank, SizeIs(1));

    ASSERT_EQ(::kill(rank.front(), signal), 0);
    const ChildResult stopped = job->wait();

    EXPECT_EQ(stopped.exit_code, 128 + signal) << stopped.err;
    EXPECT_THAT(checkpoints("a"), SizeIs(1));
    go_on_to_the_same_bits("a");
  }
}

TEST_F(Resume, B077AKilledJobGoesOn) {
  auto job = start_and_wait("a", {"--checkpoint-every", "7"});

  job->signal(SIGKILL);
  (void)job->wait();

  EXPECT_THAT(left_behind(), IsEmpty());
  go_on_to_the_same_bits("a");
}

TEST_F(Resume, NothingButWholeNewestCheckpointsAreKept) {
  ASSERT_EQ(yoke(words("a", {"--epochs", "5"})).exit_code, 0);

  EXPECT_THAT(checkpoints("a"),
              ElementsAre(EndsWith(core::text("-0000000000", 3 * kStepsPerEpoch)),
                          EndsWith(core::text("-0000000000", 4 * kStepsPerEpoch)),
                          EndsWith(core::text("-0000000000", 5 * kStepsPerEpoch))));
}

TEST_F(Resume, LogsOfBothProcessesAreOneRun) {
  auto job = start_and_wait("a", {"--checkpoint-every", "7", "--eval-every", "1"});
  job->signal(SIGTERM);
  ASSERT_EQ(job->wait().exit_code, 128 + SIGTERM);
  ASSERT_EQ(yoke({"train", "--resume", path("a")}).exit_code, 0);

  const std::vector<std::string> rows =
      core::split(core::trimmed(core::read_file(folder() / "a/metrics.csv")), '\n');
  ASSERT_EQ(rows.size(), 1U + kEpochs);
  for (int epoch = 0; epoch < kEpochs; ++epoch)
    EXPECT_THAT(rows[1U + static_cast<std::size_t>(epoch)],
                ::testing::StartsWith(core::text(epoch, ',', (epoch + 1) * kStepsPerEpoch, ',')));
  std::vector<std::int64_t> resumed;
  for (const std::string& line :
       core::split(core::trimmed(core::read_file(folder() / "a/log.jsonl")), '\n')) {
    const Json record = core::parse_json(line, "log.jsonl");
    if (record["kind"] == "run") resumed.push_back(record.value("resumed_at", std::int64_t{0}));
  }
  ASSERT_EQ(resumed.size(), 2U);
  EXPECT_EQ(resumed[0], 0);
  EXPECT_GT(resumed[1], 0);
}

TEST_F(Resume, AFinishedRunGivesItsResultAgain) {
  ASSERT_EQ(yoke(words("a", {"--epochs", "3"})).exit_code, 0);
  const std::string before = weights("a");

  const ChildResult again = yoke({"train", "--resume", path("a"), "--json"});

  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(weights("a"), before);
  EXPECT_EQ(core::parse_json(again.out, "stdout")["steps"], 3 * kStepsPerEpoch);
}

TEST_F(Resume, AChangedRecipeIsRefusedUnlessForced) {
  ASSERT_EQ(yoke(words("a", {"--epochs", "2"})).exit_code, 0);

  const ChildResult refused =
      yoke({"train", "--resume", path("a"), "--epochs", "3", "--lr", "0.1"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("epochs = 3 (from flag), was 2"),
                    HasSubstr("lr = 0.1 (from flag), was 0.05"), HasSubstr("--force recipe")));

  const ChildResult forced =
      yoke({"train", "--resume", path("a"), "--epochs", "3", "--force", "recipe", "--json"});
  ASSERT_EQ(forced.exit_code, 0) << forced.err;
  EXPECT_EQ(core::parse_json(forced.out, "stdout")["steps"], 3 * kStepsPerEpoch);
  EXPECT_THAT(core::read_file(folder() / "a/recipe.toml"), HasSubstr("epochs = 3\n"));
}

TEST_F(Resume, ADamagedCheckpointIsLeftOutWithItsReason) {
  ASSERT_EQ(yoke(words("b", {"--epochs", "6"})).exit_code, 0);
  ASSERT_EQ(yoke(words("a", {"--epochs", "5"})).exit_code, 0);
  const fs::path newest =
      folder() / "a/checkpoints" / checkpoints("a").back() / "model.safetensors";
  std::string bytes = core::read_file(newest);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  core::write_atomically(newest, bytes);

  const ChildResult rest =
      yoke({"train", "--resume", path("a"), "--epochs", "6", "--force", "recipe"});

  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(rest.err, AllOf(HasSubstr("is left out"), HasSubstr("model.safetensors")));
  EXPECT_EQ(weights("a"), weights("b"));
}

TEST_F(Resume, AFolderWithoutARunIsRefused) {
  const ChildResult refused = yoke({"train", "--resume", (folder() / "images").string()});

  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("no recipe.toml"));
}

}  // namespace
}  // namespace yoke::whole
