#include "yoke/doctor/check.hpp"

#include <future>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_machine.hpp"
#include "yoke/core/error.hpp"

namespace yoke::doctor {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

Check check(Weight weight, Finding (*run)(const Machine&),
            milliseconds limit = milliseconds(5000)) {
  return {.id = "test.one",
          .title = "one",
          .weight = weight,
          .limit = limit,
          .run = run,
          .fix = "the check's fix"};
}

Finding passes(const Machine&) { return {.text = "well"}; }
Finding fails(const Machine&) { return {.status = Status::fail, .text = "broken"}; }
Finding throws(const Machine&) { throw Error(Code::io, "read x: no", "do y"); }

std::promise<void> release;  // lets the check that does not answer go on after its test
Finding waits(const Machine&) {
  release.get_future().wait();
  return {};
}

Report run(const std::vector<Check>& checks) { return run_checks(checks, FakeMachine().machine()); }

TEST(Check, AFailureStopsTrainingOnlyWhereItsWeightSaysSo) {
  EXPECT_EQ(run({check(Weight::blocks, passes)}).verdict(), Verdict::ok);
  EXPECT_EQ(run({check(Weight::hurts, fails)}).verdict(), Verdict::warning);
  EXPECT_EQ(run({check(Weight::hurts, fails), check(Weight::blocks, fails)}).verdict(),
            Verdict::cannot_train);
}

TEST(Check, AFindingWithoutAFixTakesTheChecks) {
  const Report report = run({check(Weight::blocks, fails), check(Weight::blocks, passes)});

  EXPECT_EQ(report.results[0].finding.fix, "the check's fix");
  EXPECT_EQ(report.results[1].finding.fix, "");
}

TEST(Check, AnErrorIsAWarningInItsWords) {
  const Finding finding = run({check(Weight::blocks, throws)}).results[0].finding;

  EXPECT_EQ(finding.status, Status::warn);
  EXPECT_EQ(finding.text, "read x: no");
  EXPECT_EQ(finding.fix, "do y");
}

TEST(Check, OneThatDoesNotAnswerIsGivenUpAtItsLimit) {
  const Report report =
      run({check(Weight::blocks, waits, milliseconds(1)), check(Weight::blocks, passes)});
  release.set_value();

  EXPECT_TRUE(report.abandoned);
  EXPECT_EQ(report.results[0].finding.status, Status::warn);
  EXPECT_THAT(report.results[0].finding.text, HasSubstr("no answer within 1 ms"));
  EXPECT_EQ(report.results[1].finding.status, Status::pass);
}

TEST(Check, ANvmlThatDoesNotAnswerSkipsAllThatNeedIt) {
  std::promise<void> answer;
  const auto waiting = std::make_shared<std::shared_future<void>>(answer.get_future());
  FakeMachine fake;
  fake.add_cards(2);
  const auto machine = std::make_shared<const Machine>(
      Sources{.root = fake.scratch.folder(), .variables = {}, .open_nvml = [waiting] {
                waiting->wait();
                return device::NvmlOpened{.why_not = "late"};
              }});
  std::vector<Check> checks = select(all_checks(), {.only = {"driver.nvml", "driver.visible"}});
  checks[0].limit = milliseconds(300);  // time to begin, on a busy machine too

  const Report report = run_checks(checks, machine);
  answer.set_value();

  EXPECT_EQ(report.results[0].finding.status, Status::warn);
  EXPECT_EQ(report.results[1].finding.status, Status::skip);
}

TEST(Check, IdsAreUniqueAndLimitsBelowASecond) {
  std::set<std::string_view> ids;
  for (const Check& one : all_checks()) {
    EXPECT_TRUE(ids.insert(one.id).second) << one.id;
    EXPECT_LT(one.limit, milliseconds(1000));
  }
}

TEST(Select, TakesIdsGroupsAndPatterns) {
  const auto count = [](const Selection& selection) {
    return select(all_checks(), selection).size();
  };

  EXPECT_EQ(count({.only = {"host.shm"}}), 1U);
  EXPECT_EQ(count({.only = {"host"}}), 6U);
  EXPECT_EQ(count({.only = {"host", "*.nccl"}, .skip = {"host.shm"}}), 6U);
  EXPECT_EQ(count({.only = {}, .skip = {"*"}}), 0U);
  EXPECT_THROW(static_cast<void>(count({.only = {"hots"}})), Error);
}

}  // namespace
}  // namespace yoke::doctor
