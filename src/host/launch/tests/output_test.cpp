#include <csignal>
#include <filesystem>
#include <string>

#include "supervise_scene.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/process.hpp"

namespace yoke::launch {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// A launcher in a process of its own, whose output is kept: launch_actor with options.
class Output : public SuperviseScene {
 protected:
  void SetUp() override {
    SuperviseScene::SetUp();
    folder_ = std::filesystem::temp_directory_path() / job_;
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    SuperviseScene::TearDown();
  }

  [[nodiscard]] core::ChildResult run(const std::vector<std::string>& options,
                                      const std::vector<std::string>& scripts) const {
    std::vector<std::string> command{YOKE_LAUNCH_ACTOR, std::to_string(scripts.size()), job_,
                                     "1000"};
    command.insert(command.end(), options.begin(), options.end());
    command.emplace_back(YOKE_RANK_ACTOR);
    command.insert(command.end(), scripts.begin(), scripts.end());
    return core::run_child({.command = command, .limit = 60s});
  }

  [[nodiscard]] std::string log(int rank, const std::string& name = "stdout.log") const {
    return core::read_file(folder_ / job_ / "attempt_0" / std::to_string(rank) / name);
  }

  std::filesystem::path folder_;
};

TEST_F(Output, LogsAreWholeToTheLastByteAndTheConsoleHasThemWithAPrefix) {
  constexpr std::size_t kBytes = 3'000'001;

  const auto result =
      run({"log-dir=" + folder_.string()}, {core::text("print-bytes:", kBytes), "say:one"});

  EXPECT_EQ(log(0).size(), kBytes);
  EXPECT_EQ(log(0).back(), 'y');
  EXPECT_EQ(log(1), "one\n");
  EXPECT_THAT(result.out, AllOf(HasSubstr("[r1] one\n"), HasSubstr("[r0] xxx")));
  const std::size_t lines = (kBytes + 79) / 80;
  EXPECT_EQ(result.out.size(),
            kBytes + 5 * lines + 1 + 9);  // prefixes, the added line end, rank 1's
}

TEST_F(Output, OnlyTheRanksThatAreAskedForAreShown) {
  const auto result =
      run({"log-dir=" + folder_.string(), "show=1"}, {"say:zero", "say:one", "say:two"});

  EXPECT_EQ(result.out, "[r1] one\n");
  EXPECT_EQ(log(0), "zero\n");
  EXPECT_EQ(log(2), "two\n");
}

TEST_F(Output, RedirectedStreamsStayAwayFromTheConsole) {
  const auto result =
      run({"log-dir=" + folder_.string(), "redirects=0:1"}, {"say:zero", "say:one"});

  EXPECT_THAT(result.out, AllOf(HasSubstr("one\n"), Not(HasSubstr("zero"))));
  EXPECT_EQ(log(0), "zero\n");
}

TEST_F(Output, TheLogIsWholeAlsoWhenTheLauncherIsKilled) {
  std::vector<std::string> command{YOKE_LAUNCH_ACTOR,
                                   "1",
                                   job_,
                                   "300",
                                   "log-dir=" + folder_.string(),
                                   YOKE_RANK_ACTOR,
                                   "say:ready,print-bytes:200000,say:.,say:all said,wait"};
  core::Child launcher({.command = command, .limit = 60s});
  ASSERT_TRUE(launcher.wait_for("all said", 20s));

  launcher.signal(SIGKILL);
  static_cast<void>(launcher.wait());

  EXPECT_TRUE(eventually(10s, [&] { return processes_of_job(job_).empty(); }));
  EXPECT_THAT(log(0), HasSubstr("y.\nall said\n"));
}

TEST_F(Output, WithoutAFolderLinesComeThroughAPipe) {
  const auto result = run({"prefix"}, {"say:zero", "say:one"});

  EXPECT_THAT(result.out, AllOf(HasSubstr("[r0] zero\n"), HasSubstr("[r1] one\n")));
}

}  // namespace
}  // namespace yoke::launch
