#include <stdlib.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../append_file.hpp"
#include "../event_record.hpp"
#include "yoke/core/clock.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"
#include "yoke/train/file_loggers.hpp"
#include "yoke/train/progress.hpp"

namespace yoke::train {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// A folder of its own, removed at the end.
class Logs : public ::testing::Test {
 protected:
  Logs() {
    std::string pattern = (fs::temp_directory_path() / "yoke-logs-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Logs() override { fs::remove_all(folder_); }

  fs::path folder_;
  core::FakeClock clock_;
};

Scalars epoch_record(std::int64_t epoch, NamedValues values) {
  return {.of = Scalars::Of::epoch,
          .epoch = epoch,
          .step = 10 * (epoch + 1),
          .values = std::move(values)};
}

TEST_F(Logs, JsonLinesAreVersionedObjects) {
  const auto logger = json_logger(folder_ / "log.jsonl", clock_);

  logger->begin({.ranks = 2, .epochs = 1, .steps_per_epoch = 10});
  logger->scalars({.step = 5, .values = {{"train/loss", 0.5}}});
  logger->scalars(epoch_record(0, {{"eval/accuracy", 0.9}}));
  logger->end({.reason = "done", .epochs = 1, .steps = 10});

  const std::vector<std::string> lines = core::split(core::read_file(folder_ / "log.jsonl"), '\n');
  ASSERT_EQ(lines.size(), 5U);  // the last one is empty: every line has its end
  std::vector<std::string> kinds;
  for (std::size_t i = 0; i < 4; ++i) {
    const core::Json line = core::parse_json(lines[i], "log");
    EXPECT_EQ(line["version"], 1);
    EXPECT_EQ(line["time"], 1'735'689'600.0);  // FakeClock's start, 2025-01-01
    kinds.push_back(line["kind"]);
  }
  EXPECT_THAT(kinds, ElementsAre("run", "steps", "epoch", "end"));
  EXPECT_EQ(core::parse_json(lines[1], "log")["values"]["train/loss"], 0.5);
}

TEST_F(Logs, CsvHasARowAnEpochAndAColumnForEveryName) {
  const auto logger = csv_logger(folder_ / "metrics.csv");

  logger->begin({});
  logger->scalars({.step = 5, .values = {{"train/loss", 7.0}}});  // within an epoch: no row
  logger->scalars(epoch_record(0, {{"train/loss", 0.5}}));
  logger->scalars(epoch_record(1, {{"train/loss", 0.25}, {"eval/top, 5", 0.75}}));

  EXPECT_EQ(core::read_file(folder_ / "metrics.csv"),
            "epoch,step,train/loss,\"eval/top, 5\"\n"
            "0,10,0.5,\n"
            "1,20,0.25,0.75\n");
}

TEST_F(Logs, ARunThatGoesOnKeepsWholeLinesAndEndedEpochs) {
  csv_logger(folder_ / "metrics.csv")->begin({});
  {
    const auto csv = csv_logger(folder_ / "metrics.csv");
    csv->begin({});
    csv->scalars(epoch_record(0, {{"train/loss", 0.5}, {"eval/top, \"5\"", 0.75}}));
    csv->scalars(epoch_record(1, {{"train/loss", 0.25}}));
  }
  core::write_atomically(folder_ / "log.jsonl", "{\"kind\":\"run\"}\n{\"kind\":\"st");

  const auto csv = csv_logger(folder_ / "metrics.csv");
  csv->begin({.resumed_at = 15});
  csv->scalars(epoch_record(1, {{"train/loss", 0.125}}));
  json_logger(folder_ / "log.jsonl", clock_)->begin({.resumed_at = 15});

  EXPECT_EQ(core::read_file(folder_ / "metrics.csv"),
            "epoch,step,train/loss,\"eval/top, \"\"5\"\"\"\n"
            "0,10,0.5,0.75\n"
            "1,20,0.125,\n");
  const std::vector<std::string> lines = core::split(core::read_file(folder_ / "log.jsonl"), '\n');
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], "{\"kind\":\"run\"}");
  EXPECT_EQ(core::parse_json(lines[1], "log")["resumed_at"], 15);
}

TEST_F(Logs, RecordThatDoesNotFitIsTakenBack) {
  // /dev/full answers every write as a full disk does.
  AppendFile file("/dev/full");

  try {
    file.append("a line\n");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::io);
    EXPECT_THAT(error.message(), HasSubstr("/dev/full"));
    EXPECT_THAT(error.message(), HasSubstr("No space left on device"));
  }
}

TEST(EventRecord, ChecksumIsCastagnolis) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);  // RFC 3720, B.4
}

TEST(EventRecord, FramesAMessageByLengthAndMaskedChecksums) {
  const std::string record = tf_record("abc");

  std::uint64_t length = 0;
  std::memcpy(&length, record.data(), sizeof length);
  EXPECT_EQ(length, 3U);
  ASSERT_EQ(record.size(), 8U + 4 + 3 + 4);
  std::uint32_t stored = 0;
  std::memcpy(&stored, record.data() + 15, sizeof stored);
  const std::uint32_t crc = crc32c("abc");
  EXPECT_EQ(stored, ((crc >> 15) | (crc << 17)) + 0xA282EAD8U);
}

TEST(EventRecord, ScalarsAreProtocolBufferFields) {
  const std::string event = scalars_event(0.0, 300, {{"a", 1.0}});

  const std::string expected = std::string("\x09\0\0\0\0\0\0\0\0", 9) +  // wall_time = 0
                               "\x10\xAC\x02" +                          // step = 300
                               "\x2A\x0A\x0A\x08" +  // summary of 10 bytes, value of 8
                               "\x0A\x01" + "a" +    // tag
                               std::string("\x15\0\0\x80\x3F", 5);  // simple_value = 1
  EXPECT_EQ(event, expected);
}

/// What a Progress writes, with a clock that stands still until told.
class ProgressTest : public ::testing::Test {
 protected:
  std::shared_ptr<Progress> make(ProgressOptions options) {
    return std::make_shared<Progress>([this](std::string_view text) { written_ += text; }, options,
                                      clock_);
  }
  static StepReport at(std::int64_t step) {
    return {.epoch_step = step, .epoch_steps = 10, .step = step};
  }

  core::FakeClock clock_;
  std::string written_;
};

TEST_F(ProgressTest, PipeGetsPlainLinesNowAndThen) {
  auto progress = make({.line = 10s});

  progress->begin({.ranks = 2, .epochs = 3, .steps_per_epoch = 10, .parameters = 421'642});
  for (std::int64_t step = 1; step <= 10; ++step) {
    clock_.advance(3s);
    progress->step(at(step));
  }
  progress->scalars(
      {.of = Scalars::Of::epoch, .values = {{"train/loss", 0.5}, {"eval/accuracy", 0.875}}});

  EXPECT_EQ(written_,
            "training 421,642 parameters on 2 ranks (cpu), 3 epochs of 10 steps\n"
            "epoch 1/3  step 4/10  left 0:18\n"
            "epoch 1/3  step 8/10  left 0:06\n"
            "epoch 1/3  loss 0.5000  eval/accuracy 0.8750\n");
}

TEST_F(ProgressTest, TerminalGetsABarThatIsDrawnOverItself) {
  auto progress = make({.terminal = true, .columns = 60, .redraw = 100ms});
  progress->begin({.epochs = 1});
  written_.clear();

  progress->step(at(1));  // the first one at once
  clock_.advance(50ms);
  progress->step(at(2));  // too early
  clock_.advance(60ms);
  progress->step(at(5));

  EXPECT_EQ(written_,
            "\r\x1b[Kepoch 1/1 [##..................] 1/10"
            "\r\x1b[Kepoch 1/1 [##########..........] 5/10  left 0:00");
}

TEST_F(ProgressTest, BarNeverFillsTheLastColumn) {
  auto progress = make({.terminal = true, .columns = 20});
  progress->begin({.epochs = 1});
  written_.clear();

  clock_.advance(1s);
  progress->step(at(5));

  EXPECT_EQ(written_, "\r\x1b[Kepoch 1/1 [########");
}

TEST_F(ProgressTest, WordsOfOthersStandAboveTheBar) {
  auto progress = make({.terminal = true});
  auto below = std::make_shared<core::RecordingConsole>();
  const auto console = progress->console(below);
  progress->begin({.epochs = 1});
  clock_.advance(1s);
  progress->step(at(5));
  written_.clear();

  console->write(core::Level::info, "a word");

  EXPECT_EQ(written_, "\r\x1b[K");  // the bar is gone before the word
  EXPECT_THAT(below->lines(), ElementsAre("a word"));
}

}  // namespace
}  // namespace yoke::train
