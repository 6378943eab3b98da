#include "yoke/launch/failure.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"

namespace yoke::launch {
namespace {

namespace fs = std::filesystem;

Failure told(int rank, const std::string& code, const std::string& message, double seconds) {
  return {.rank = rank, .exit_code = 1, .code = code, .message = message, .seconds = seconds};
}

Failure by_signal(int rank, int signal, double seconds) {
  return {.rank = rank, .signal = signal, .seconds = seconds};
}

int cause_of(std::vector<Failure> failures) {
  Outcome outcome;
  const std::size_t all = failures.size();
  choose_root_cause(std::move(failures), outcome);
  EXPECT_EQ(outcome.follow_ups.size(), all - 1);
  return outcome.root_cause ? outcome.root_cause->rank : -2;
}

TEST(RootCause, TheEarliestWins) {
  EXPECT_EQ(cause_of({told(2, "io", "b", 1.5), told(0, "io", "a", 1.4), told(1, "io", "c", 1.6)}),
            0);
}

TEST(RootCause, ARankThatLostContactGivesWayToOneWithAReason) {
  EXPECT_EQ(cause_of({told(0, "peer_lost", "rank 1 is gone", 1.0), by_signal(1, SIGSEGV, 1.2)}), 1);
  EXPECT_EQ(cause_of({told(0, "timeout", "no answer", 1.0), told(1, "io", "disk full", 3.0)}), 1);
  EXPECT_EQ(cause_of({told(0, "", "RuntimeError: Connection closed by peer [127.0.0.1]:4711", 1.0),
                      told(1, "", "ValueError: bad label", 1.1)}),
            1);
}

TEST(RootCause, ButNotToAFailureMuchLater) {
  EXPECT_EQ(cause_of({told(0, "timeout", "no answer", 1.0), told(1, "io", "disk full", 7.0)}), 0);
}

TEST(RootCause, WithNoneWithAReasonTheEarliestLossWins) {
  EXPECT_EQ(cause_of({told(0, "timeout", "no answer", 1.0), told(1, "peer_lost", "gone", 0.9)}), 1);
}

TEST(RootCause, NoFailureIsNoCause) {
  Outcome outcome;

  choose_root_cause({}, outcome);

  EXPECT_FALSE(outcome.root_cause);
}

TEST(Describe, SaysWhoWhatAndWhatToDo) {
  Failure failure = told(1, "corrupt_data", "bad label 11 in sample 42", 1.0);
  failure.host = "n7";
  failure.hint = "look at sample 42";

  EXPECT_EQ(describe(failure), "rank 1 (host n7): bad label 11 in sample 42 / look at sample 42");
}

TEST(Describe, SaysTheRankOnceWhereItsOwnWordsBeginWithIt) {
  const std::string line = describe({.rank = 3, .host = "n7", .message = "rank 3: out of eggs"});

  EXPECT_EQ(line, "rank 3 (host n7): out of eggs");
}

TEST(Describe, NamesSignalsAndGuessesAtSigkill) {
  EXPECT_EQ(describe({.rank = 0, .host = "n7", .signal = SIGKILL, .seconds = 0.25}),
            "rank 0 (host n7): killed by SIGKILL after 0.2 s / possibly out of memory: read the "
            "kernel's log (dmesg)");
  EXPECT_THAT(describe({.rank = 0, .host = "n7", .signal = SIGSEGV}),
              ::testing::HasSubstr("killed by SIGSEGV"));
}

TEST(Describe, SaysWhereARankWithoutWordsStood) {
  const Failure killed{.rank = 2,
                       .host = "n7",
                       .signal = SIGKILL,
                       .seconds = 3.0,
                       .last_step = "after step 12, in all-reduce #3 (1.0 MiB)"};

  EXPECT_THAT(describe(killed),
              ::testing::HasSubstr("killed by SIGKILL after 3.0 s, after step 12, in all-reduce "
                                   "#3 (1.0 MiB) / "));
}

TEST(Describe, LeavesOutTheStackBehindTorchsErrors) {
  const Failure failure =
      told(0, "",
           "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)\nException raised from meta at "
           "LinearAlgebra.cpp:200\nframe #0: c10::Error::Error",
           1.0);

  EXPECT_THAT(describe(failure), ::testing::EndsWith("cannot be multiplied (2x3 and 4x5)"));
}

class ErrorFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "yoke-error-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    variables_ = {{"TORCHELASTIC_ERROR_FILE", (folder_ / "error.json").string()}, {"RANK", "3"}};
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
  core::EnvironmentMap variables_;
};

TEST_F(ErrorFile, HoldsWhatTorchrunReadsAndWhatWeRead) {
  report_failure(Error(Code::io, "write a.bin: no space left", "free space there"), variables_);

  const core::Json whole = core::parse_json(core::read_file(folder_ / "error.json"), "error.json");
  const auto failure = read_error_file(folder_ / "error.json");
  EXPECT_EQ(whole["message"]["message"], "write a.bin: no space left");
  EXPECT_TRUE(whole["message"]["extraInfo"]["py_callstack"].is_string());
  EXPECT_GT(std::stoll(whole["message"]["extraInfo"]["timestamp"].get<std::string>()),
            1'700'000'000);
  EXPECT_EQ(whole["rank"], 3);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, "io");
  EXPECT_EQ(failure->hint, "free space there");
  EXPECT_GT(failure->time_ns, 1'700'000'000'000'000'000);
}

TEST_F(ErrorFile, TheFirstErrorStays) {
  report_failure(std::runtime_error("first"), variables_);
  report_failure(std::runtime_error("second"), variables_);

  const auto failure = read_error_file(folder_ / "error.json");
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->message, "first");
}

TEST_F(ErrorFile, PythonsRecordIsRead) {
  core::write_atomically(folder_ / "error.json",
                         R"({"message": {"message": "ValueError: bad label 11",
                             "extraInfo": {"py_callstack": "Traceback ...", "timestamp": "1796000000"}}})");

  const auto failure = read_error_file(folder_ / "error.json");

  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->message, "ValueError: bad label 11");
}

TEST_F(ErrorFile, ACutFileIsNoError) {
  core::write_atomically(folder_ / "error.json", R"({"message": {"mess)");

  EXPECT_FALSE(read_error_file(folder_ / "error.json"));
  EXPECT_FALSE(read_error_file(folder_ / "none.json"));
}

TEST_F(ErrorFile, AloneTheFailureFileIsWritten) {
  report_failure(Error(Code::cuda, "out of memory"),
                 {{"YOKE_FAILURE_FILE", (folder_ / "run" / "failure.json").string()}});

  const core::Json whole =
      core::parse_json(core::read_file(folder_ / "run" / "failure.json"), "failure.json");
  EXPECT_EQ(whole["root_cause"]["code"], "cuda");
  EXPECT_EQ(whole["root_cause"]["signal_name"], "");
}

TEST_F(ErrorFile, AFolderThatIsGoneIsNoSecondError) {
  fs::remove_all(folder_);

  report_failure(std::runtime_error("first"), variables_);

  EXPECT_FALSE(fs::exists(folder_));
}

}  // namespace
}  // namespace yoke::launch
