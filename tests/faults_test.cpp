// Ranks that go wrong: what their user reads, and that nothing of them is left.

#include <chrono>
#include <ostream>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scene.hpp"
#include "yoke/core/text.hpp"

namespace yoke::whole {
namespace {

using namespace std::chrono_literals;
using core::ChildResult;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Faults : public Scene {
 protected:
  ChildResult with_fault(const std::string& fault, const std::string& ranks = "3") {
    return run(YOKE_FAULTS_PROGRAM, {fault}, {{"YOKE_RANKS", ranks}, {"YOKE_TIMEOUT", "3"}});
  }
};

TEST_F(Faults, NoFaultIsNoFailure) {
  const ChildResult result = with_fault("none");

  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(lines_with("error: ", result.err), 0U) << result.err;
}

struct Fault {
  std::string called;
  int exit_code;
  std::vector<std::string> said;  // in the last line
};

std::ostream& operator<<(std::ostream& out, const Fault& fault) { return out << fault.called; }

class EveryFault : public Faults, public ::testing::WithParamInterface<Fault> {};

TEST_P(EveryFault, IsSaidOnceNamesItsRankAndLeavesNothing) {
  const Fault& fault = GetParam();
  const auto start = std::chrono::steady_clock::now();

  const ChildResult result = with_fault(fault.called);

  EXPECT_EQ(result.exit_code, fault.exit_code) << result.err;
  EXPECT_FALSE(result.timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 40s);
  EXPECT_EQ(lines_with("error: ", result.err), 1U) << result.err;
  for (const std::string& part : fault.said)
    EXPECT_THAT(last_line(result.err), HasSubstr(part)) << result.err;
  EXPECT_THAT(left_behind(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Faults, EveryFault,
    ::testing::Values(Fault{"throw", 1, {"rank 1", "bad sample 42"}},
                      Fault{"exit7", 1, {"rank 1", "exited with code 7"}},
                      Fault{"kill", 1, {"rank 1", "SIGKILL"}},
                      Fault{"segv", 1, {"rank 1", "SIGSEGV"}},
                      Fault{"stop", 1, {"no answer from rank 1", "in 3000 ms"}},
                      Fault{"other-model", 2, {"rank 1", "weight", "3x4", "2x4"}},
                      Fault{"changed-model", 2, {"rank 1", "bias", "changed after wrapping"}},
                      Fault{"nan", 1, {"rank 1", "step 3", "nan", "samples "}}),
    [](const auto& row) {
      std::string name = row.param.called;
      for (char& c : name) {
        if (c == '-') c = '_';
      }
      return name;
    });

/// "rank of mask" lines of one run.
std::set<std::string> masks(const ChildResult& result) {
  std::set<std::string> lines;
  for (const std::string& line : core::split(result.out, '\n')) {
    if (line.starts_with("mask of rank")) lines.insert(line);
  }
  return lines;
}

std::string mask_in(const std::string& line) { return line.substr(line.find(": ") + 2, 16); }
std::string weight_in(const std::string& line) { return line.substr(line.find("weight")); }

TEST_F(Faults, B009MasksDifferByRankAndRepeatWithTheRun) {
  const ChildResult first = with_fault("dropout", "4");
  const ChildResult second = with_fault("dropout", "4");

  ASSERT_EQ(first.exit_code, 0) << first.err;
  const std::set<std::string> lines = masks(first);
  ASSERT_EQ(lines.size(), 4U) << first.out;
  EXPECT_EQ(lines, masks(second));
  std::set<std::string> different;
  std::set<std::string> weights;
  for (const std::string& line : lines) {
    different.insert(mask_in(line));
    weights.insert(weight_in(line));
  }
  EXPECT_EQ(different.size(), 4U);
  EXPECT_EQ(weights.size(), 1U);  // the ranks' models stay equal all the same
}

}  // namespace
}  // namespace yoke::whole
