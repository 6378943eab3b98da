#include "yoke/core/telemetry.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/telemetry_reader.hpp"

namespace yoke::core {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class Telemetry : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "yoke-telemetry-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    before_ = attach(console_);
  }
  void TearDown() override {
    attach(before_);
    fs::remove_all(root_);
  }

  [[nodiscard]] TelemetrySnapshot read(int rank = 0) const {
    return TelemetryReader(telemetry_file(root_, "job", rank)).read();
  }

  template <class Value>
  [[nodiscard]] Value value_at(std::size_t offset) const {
    Value value{};
    std::memcpy(&value, read_file(telemetry_file(root_, "job", 0)).data() + offset, sizeof value);
    return value;
  }

  void overwrite(std::size_t offset, const std::string& bytes) const {
    const int file = ::open(telemetry_file(root_, "job", 0).c_str(), O_WRONLY);
    ASSERT_EQ(::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes.size()));
    ::close(file);
  }

  FakeClock clock_;
  fs::path root_;
  std::shared_ptr<RecordingConsole> console_ = std::make_shared<RecordingConsole>();
  std::shared_ptr<Console> before_;
};

const TelemetryIdentity kRank0{.job = "job",
                               .rank = 0,
                               .world_size = 8,
                               .local_rank = 0,
                               .local_world_size = 4,
                               .host = "node7",
                               .card_uuid = "GPU-5a88e6c1-0000-1111-2222-333344445555",
                               .program = "train"};

TEST_F(Telemetry, AReaderSeesWhoWritesAndThatItLives) {
  const TelemetryWriter writer(root_, kRank0, clock_);

  const TelemetrySnapshot seen = read();

  EXPECT_TRUE(writer.active());
  EXPECT_EQ(seen.identity.job, "job");
  EXPECT_EQ(seen.identity.world_size, 8);
  EXPECT_EQ(seen.identity.local_world_size, 4);
  EXPECT_EQ(seen.identity.host, "node7");
  EXPECT_EQ(seen.identity.card_uuid, kRank0.card_uuid);
  EXPECT_EQ(seen.process.pid, static_cast<std::uint64_t>(::getpid()));
  EXPECT_EQ(seen.process.started, clock_.wall());
  EXPECT_EQ(seen.writer, WriterLife::alive);
  EXPECT_EQ(seen.step_ended, std::nullopt);
  EXPECT_EQ(seen.loss, std::nullopt);
  EXPECT_EQ(seen.queue_depth, std::nullopt);
}

TEST_F(Telemetry, StepsAddUpAndTheLastOneIsShown) {
  TelemetryWriter writer(root_, kRank0, clock_);

  writer.step_ended({.epoch = 0, .step = 1, .samples = 64, .phases = {1ms, 2ms, 3ms, 4ms, 5ms}});
  clock_.advance(10ms);
  writer.step_ended({.epoch = 1,
                     .step = 2,
                     .samples = 30,
                     .sample_hash = 99,
                     .phases = {10ms, 20ms, 30ms, 40ms, 50ms}});
  writer.loss(2.5);
  writer.queue_depth(3);

  const TelemetrySnapshot seen = read();
  EXPECT_EQ(seen.last_step.epoch, 1U);
  EXPECT_EQ(seen.last_step.step, 2U);
  EXPECT_EQ(seen.last_step.samples, 30U);
  EXPECT_EQ(seen.last_step.sample_hash, 99U);
  EXPECT_THAT(seen.last_step.phases, ::testing::ElementsAre(10ms, 20ms, 30ms, 40ms, 50ms));
  EXPECT_THAT(seen.total_phases, ::testing::ElementsAre(11ms, 22ms, 33ms, 44ms, 55ms));
  EXPECT_EQ(seen.total_samples, 94U);
  EXPECT_EQ(seen.step_ended, clock_.now());
  EXPECT_EQ(seen.loss, 2.5);
  EXPECT_EQ(seen.queue_depth, 3);
}

TEST_F(Telemetry, AWaitingCollectiveHasArrivedAndNotEnded) {
  TelemetryWriter writer(root_, kRank0, clock_);

  const auto first = writer.collective_began({.kind = CollectiveKind::broadcast,
                                              .sequence = 7,
                                              .group = 2,
                                              .dtype = 6,
                                              .bytes = 40,
                                              .peer = 1});
  clock_.advance(1ms);
  writer.collective_ended(first);
  clock_.advance(1ms);
  (void)writer.collective_began(
      {.kind = CollectiveKind::all_reduce, .sequence = 8, .bytes = 1 << 20});

  const auto seen = read().collectives;
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].facts.kind, CollectiveKind::broadcast);
  EXPECT_EQ(seen[0].facts.sequence, 7U);
  EXPECT_EQ(seen[0].facts.group, 2U);
  EXPECT_EQ(seen[0].facts.dtype, 6U);
  EXPECT_EQ(seen[0].facts.bytes, 40U);
  EXPECT_EQ(seen[0].facts.peer, 1);
  EXPECT_EQ(*seen[0].ended - seen[0].began, 1ms);
  EXPECT_EQ(seen[1].facts.sequence, 8U);
  EXPECT_EQ(seen[1].began - seen[0].began, 2ms);
  EXPECT_EQ(seen[1].ended, std::nullopt);
}

TEST_F(Telemetry, TheRingKeepsTheLastSixteenAndALateEndSpoilsNone) {
  TelemetryWriter writer(root_, kRank0, clock_);

  const auto early = writer.collective_began({.kind = CollectiveKind::barrier, .sequence = 0});
  for (std::uint64_t i = 1; i <= 20; ++i) {
    (void)writer.collective_began({.kind = CollectiveKind::barrier, .sequence = i});
  }
  writer.collective_ended(early);

  const TelemetrySnapshot seen = read();
  EXPECT_EQ(seen.collectives_begun, 21U);
  ASSERT_EQ(seen.collectives.size(), 16U);
  EXPECT_EQ(seen.collectives.front().facts.sequence, 5U);
  EXPECT_EQ(seen.collectives.back().facts.sequence, 20U);
  for (const CollectiveSample& sample : seen.collectives) EXPECT_EQ(sample.ended, std::nullopt);
}

// The offsets of docs/telemetry.md, for readers in other languages.
TEST_F(Telemetry, TheFileHasTheDocumentedLayout) {
  TelemetryWriter writer(root_, {.job = "job", .rank = 0, .world_size = 8, .host = "node7"},
                         clock_);
  writer.step_ended(
      {.epoch = 5, .step = 6, .samples = 7, .sample_hash = 8, .phases = {1ns, 2ns, 3ns, 4ns, 5ns}});
  writer.queue_depth(9);
  writer.loss(0.75);
  const auto ticket = writer.collective_began({.kind = CollectiveKind::receive,
                                               .sequence = 11,
                                               .group = 12,
                                               .dtype = 13,
                                               .bytes = 14,
                                               .peer = 15});
  clock_.advance(1s);
  writer.collective_ended(ticket);
  writer.failed("broken");

  const std::string bytes = read_file(telemetry_file(root_, "job", 0));
  EXPECT_EQ(bytes.size(), 4096U);
  EXPECT_EQ(bytes.substr(0, 8), "YOKETELE");
  EXPECT_EQ(value_at<std::uint32_t>(8), 1U);
  EXPECT_EQ(value_at<std::uint32_t>(12), 4096U);
  EXPECT_EQ(value_at<std::uint64_t>(16), 12U) << "6 changes, 2 counts each";
  EXPECT_EQ(value_at<std::uint64_t>(24), static_cast<std::uint64_t>(::getpid()));
  EXPECT_EQ(value_at<std::int64_t>(56), 1'735'689'600'000'000'000);
  EXPECT_EQ(value_at<std::int64_t>(64), 1'000'000'000'000);
  EXPECT_EQ(value_at<std::int64_t>(72), 1'001'000'000'000);
  EXPECT_EQ(value_at<std::int32_t>(84), 8);
  EXPECT_STREQ(bytes.data() + 96, "job");
  EXPECT_STREQ(bytes.data() + 160, "node7");
  EXPECT_EQ(value_at<std::uint64_t>(352), 5U);
  EXPECT_EQ(value_at<std::uint64_t>(360), 6U);
  EXPECT_EQ(value_at<std::uint64_t>(368), 7U);
  EXPECT_EQ(value_at<std::uint64_t>(376), 8U);
  EXPECT_EQ(value_at<std::uint64_t>(384 + 4 * 8), 5U);
  EXPECT_EQ(value_at<std::uint64_t>(424 + 4 * 8), 5U);
  EXPECT_EQ(value_at<std::uint64_t>(464), 7U);
  EXPECT_EQ(value_at<std::int64_t>(472), 1'000'000'000'000);
  EXPECT_EQ(value_at<std::int64_t>(480), 9);
  EXPECT_EQ(value_at<double>(488), 0.75);
  EXPECT_EQ(value_at<std::uint64_t>(496), 1U);
  EXPECT_EQ(value_at<std::uint64_t>(504), 1U);
  EXPECT_EQ(value_at<std::int64_t>(512), 1'001'000'000'000);
  EXPECT_EQ(value_at<std::uint64_t>(576), 11U);
  EXPECT_EQ(value_at<std::int64_t>(584), 1'000'000'000'000);
  EXPECT_EQ(value_at<std::int64_t>(592), 1'001'000'000'000);
  EXPECT_EQ(value_at<std::uint64_t>(600), 14U);
  EXPECT_EQ(value_at<std::uint32_t>(608), 7U);
  EXPECT_EQ(value_at<std::uint32_t>(612), 13U);
  EXPECT_EQ(value_at<std::uint32_t>(616), 12U);
  EXPECT_EQ(value_at<std::int32_t>(620), 15);
  EXPECT_STREQ(bytes.data() + 1600, "broken");
}

TEST_F(Telemetry, OnlyItsUserMayReadIt) {
  const TelemetryWriter writer(root_ / "deep" / "root", kRank0, clock_);

  struct stat file{};
  struct stat folder{};
  ASSERT_EQ(::stat((root_ / "deep/root/job/0").c_str(), &file), 0);
  ASSERT_EQ(::stat((root_ / "deep/root/job").c_str(), &folder), 0);

  EXPECT_EQ(file.st_mode & 0777U, 0600U);
  EXPECT_EQ(folder.st_mode & 0777U, 0700U);
}

TEST_F(Telemetry, ANormalEndRemovesTheFileAndTheLastOneTheFolder) {
  auto other =
      std::make_unique<TelemetryWriter>(root_, TelemetryIdentity{.job = "job", .rank = 10}, clock_);
  auto first =
      std::make_unique<TelemetryWriter>(root_, TelemetryIdentity{.job = "job", .rank = 9}, clock_);
  EXPECT_THAT(telemetry_files(root_), ::testing::ElementsAre(root_ / "job/9", root_ / "job/10"));

  first.reset();
  EXPECT_THAT(telemetry_files(root_), ::testing::ElementsAre(root_ / "job/10"));
  other.reset();

  EXPECT_TRUE(fs::is_empty(root_));
}

TEST_F(Telemetry, AfterAFailureTheTextStaysForTheLauncher) {
  const std::string long_text =
      std::string(1022, 'x') + "\xc3\xa4" + std::string(100, 'y');  // an a-umlaut at the cut

  TelemetryWriter(root_, kRank0, clock_).failed(long_text);

  const TelemetrySnapshot seen = read();
  EXPECT_EQ(seen.error, std::string(1022, 'x'));
  EXPECT_EQ(seen.error_at, clock_.now());
}

TEST_F(Telemetry, AKilledWriterIsDeadAndCanBeSweptAway) {
  const TelemetryWriter survivor(root_, {.job = "job", .rank = 1}, clock_);
  const pid_t child = ::fork();
  if (child == 0) {
    TelemetryWriter writer(root_, kRank0, clock_);
    writer.step_ended({.step = 41});
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);

  const TelemetrySnapshot seen = read();
  const std::size_t removed = remove_dead_telemetry(root_, "job");

  EXPECT_EQ(seen.writer, WriterLife::dead);
  EXPECT_EQ(seen.last_step.step, 41U);
  EXPECT_TRUE(seen.consistent);
  EXPECT_EQ(removed, 1U);
  EXPECT_THAT(telemetry_files(root_), ::testing::ElementsAre(root_ / "job/1"));
}

TEST_F(Telemetry, ANewJobRemovesWhatDeadOnesLeftADayAgo) {
  const TelemetryWriter alive(root_, {.job = "alive"}, clock_);
  TelemetryWriter(root_, kRank0, clock_).failed("yesterday");
  overwrite(48, std::string("\1\0\0\0\0\0\0\0", 8));  // its process is gone

  clock_.advance(23h);
  const TelemetryWriter early(root_, {.job = "early"}, clock_);
  const std::size_t kept = telemetry_files(root_).size();
  clock_.advance(2h);
  const TelemetryWriter late(root_, {.job = "late"}, clock_);

  EXPECT_EQ(kept, 3U);
  EXPECT_THAT(telemetry_files(root_),
              ::testing::ElementsAre(root_ / "alive/0", root_ / "early/0", root_ / "late/0"));
  EXPECT_FALSE(fs::exists(root_ / "job"));
}

TEST_F(Telemetry, AnotherProcessWithTheSameNumberIsNotTakenForTheWriter) {
  const TelemetryWriter writer(root_, kRank0, clock_);

  overwrite(48, std::string("\1\0\0\0\0\0\0\0", 8));  // started one tick after boot

  EXPECT_EQ(read().writer, WriterLife::dead);
}

TEST_F(Telemetry, AWriterInAnotherPidNamespaceIsNotJudged) {
  const TelemetryWriter writer(root_, kRank0, clock_);

  overwrite(32, std::string(8, '\0'));  // no host pid
  overwrite(40, std::string("\1\0\0\0\0\0\0\0", 8));

  EXPECT_EQ(read().writer, WriterLife::unknown);
}

TEST_F(Telemetry, AWriterStoppedInTheMiddleOfAChangeIsReadAndMarked) {
  TelemetryWriter writer(root_, kRank0, clock_);
  writer.step_ended({.step = 12});

  overwrite(16, std::string("\3\0\0\0\0\0\0\0", 8));

  const TelemetrySnapshot seen = read();
  EXPECT_FALSE(seen.consistent);
  EXPECT_EQ(seen.last_step.step, 12U);
}

TEST_F(Telemetry, DamagedAndForeignFilesAreRefusedWithTheirReason) {
  const TelemetryWriter writer(root_, kRank0, clock_);
  const auto code_after = [&](auto damage) {
    damage();
    try {
      (void)read();
    } catch (const Error& error) {
      return error.code();
    }
    return Code::internal;
  };

  EXPECT_EQ(code_after([&] { overwrite(8, std::string("\2\0\0\0", 4)); }), Code::unsupported);
  overwrite(8, std::string("\1\0\0\0", 4));
  EXPECT_EQ(code_after([&] { overwrite(0, "X"); }), Code::corrupt_data);
  overwrite(0, "Y");
  EXPECT_EQ(code_after([&] { fs::resize_file(telemetry_file(root_, "job", 0), 4000); }),
            Code::corrupt_data);
  EXPECT_EQ(code_after([&] { fs::resize_file(telemetry_file(root_, "job", 0), 0); }),
            Code::corrupt_data);
  EXPECT_EQ(code_after([&] { fs::remove(telemetry_file(root_, "job", 0)); }), Code::not_found);
  fs::create_directory(root_ / "job");
  write_atomically(telemetry_file(root_, "job", 0),
                   std::string(4096, 'x'));  // so that the writer ends as usual
}

TEST_F(Telemetry, WhereNoFileCanBeMadeOneWarningSaysSo) {
  write_atomically(root_ / "blocked", "a file, where a folder is wanted");

  TelemetryWriter writer(root_ / "blocked", kRank0, clock_);
  writer.step_ended({.step = 1});
  writer.collective_ended(writer.collective_began({}));
  writer.failed("x");

  EXPECT_FALSE(writer.active());
  ASSERT_EQ(console_->lines().size(), 1U);
  EXPECT_THAT(console_->lines()[0], ::testing::HasSubstr("blocked"));
}

TEST_F(Telemetry, AFullFileSystemIsNoticedAtOnceAndNotAtALaterStore) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = before;
  limit.rlim_cur = 1'000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);

  const TelemetryWriter writer(root_, kRank0, clock_);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);

  EXPECT_FALSE(writer.active());
  EXPECT_TRUE(fs::is_empty(root_ / "job"));
}

TEST_F(Telemetry, ALiveRanksFileIsNotTakenOver) {
  TelemetryWriter first(root_, kRank0, clock_);
  first.step_ended({.step = 3});

  const TelemetryWriter second(root_, kRank0, clock_);

  EXPECT_FALSE(second.active());
  EXPECT_EQ(read().last_step.step, 3U);
  EXPECT_THAT(console_->lines().at(0), ::testing::HasSubstr("YOKE_JOB_ID"));
}

TEST_F(Telemetry, AFileLeftByADeadRankIsReplaced) {
  TelemetryWriter(root_, kRank0, clock_).failed("yesterday");
  overwrite(48, std::string("\1\0\0\0\0\0\0\0", 8));

  const TelemetryWriter writer(root_, kRank0, clock_);

  EXPECT_TRUE(writer.active());
  EXPECT_EQ(read().error, "");
}

TEST(TelemetryPaths, TheVariableReplacesTheRootAndStrangeJobNamesStayInside) {
  const std::string own = "/dev/shm/yoke-" + std::to_string(::geteuid());

  EXPECT_EQ(telemetry_root({}), own);
  EXPECT_EQ(telemetry_root({{"YOKE_TELEMETRY_DIR", ""}}), own);
  EXPECT_EQ(telemetry_root({{"YOKE_TELEMETRY_DIR", "/t"}}), "/t");
  EXPECT_EQ(telemetry_file("/t", "a/../b c", 3), "/t/a_.._b_c/3");
  EXPECT_EQ(telemetry_file("/t", "..", 0), "/t/_../0");
  EXPECT_EQ(telemetry_file("/t", "", 0), "/t/_/0");
}

// Every field of a step carries the step's number, so that a mixture of two steps shows.
TEST_F(Telemetry, ASnapshotNeverMixesTwoSteps) {
  TelemetryWriter writer(root_, kRank0);
  const std::jthread work([&](const std::stop_token& stop) {
    for (std::uint64_t n = 1; !stop.stop_requested(); ++n) {
      const std::chrono::nanoseconds ns(n);
      writer.step_ended(
          {.epoch = n, .step = n, .samples = n, .sample_hash = n, .phases = {ns, ns, ns, ns, ns}});
    }
  });

  const TelemetryReader reader(telemetry_file(root_, "job", 0));
  int whole = 0;
  for (int i = 0; i < 2'000; ++i) {
    const TelemetrySnapshot seen = reader.read();
    if (!seen.consistent) continue;
    ++whole;
    const std::uint64_t n = seen.last_step.step;
    if (n == 0) continue;
    const std::chrono::nanoseconds ns(n);
    ASSERT_EQ(seen.last_step.epoch, n);
    ASSERT_EQ(seen.last_step.sample_hash, n);
    ASSERT_THAT(seen.last_step.phases, ::testing::Each(ns));
    ASSERT_EQ(seen.total_samples, n * (n + 1) / 2);
  }

  EXPECT_GT(whole, 0);
}

#ifndef __SANITIZE_THREAD__  // which makes each of the stores a call
// The least of many rounds: a busy machine makes some of them slow, never all.
TEST_F(Telemetry, AStepAndACollectiveCostLessThanAMicrosecond) {
  TelemetryWriter writer(root_, kRank0);
  const auto least_cost = [](const auto& call) {
    constexpr int kCalls = 100;
    auto least = std::chrono::nanoseconds::max();
    for (int round = 0; round < 200; ++round) {
      const auto begin = SystemClock::instance().now();
      for (int i = 0; i < kCalls; ++i) call();
      least = std::min<std::chrono::nanoseconds>(least,
                                                 (SystemClock::instance().now() - begin) / kCalls);
    }
    return least;
  };

  const auto step = least_cost([&] { writer.step_ended({.step = 1, .samples = 64}); });
  const auto collective =
      least_cost([&] { writer.collective_ended(writer.collective_began({.bytes = 1})); });

  EXPECT_TRUE(writer.active());
  EXPECT_LT(step, 1us);
  EXPECT_LT(collective, 1us);
}
#endif

}  // namespace
}  // namespace yoke::core
