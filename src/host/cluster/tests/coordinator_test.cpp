#include "yoke/cluster/coordinator.hpp"

#include <chrono>
#include <csignal>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/cluster/message.hpp"

namespace yoke::cluster {
namespace {

using namespace std::chrono_literals;
using core::Json;
using launch::Failure;
using launch::Outcome;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Machines named a, b, c ... that speak to a coordinator in a time of their own.
class Machines : public ::testing::Test {
 protected:
  void begin(CoordinatorOptions options) {
    options.job_id = "j1";
    options_ = options;
    coordinator_.emplace(options, now_);
  }

  Json say(const std::string& name, const std::string& state, int round = 0,
           Json more = Json::object()) {
    Json message{{"protocol", kProtocol},
                 {"agent", name},
                 {"count", ++count_},
                 {"host", "host-" + name},
                 {"pid", 100},
                 {"address", "10.0.0." + std::to_string(name[0] - 'a' + 1)},
                 {"ranks", 2},
                 {"fewest", options_.fewest},
                 {"most", options_.most},
                 {"node_rank", -1},
                 {"state", state},
                 {"round", round},
                 {"store_port", 4711},
                 {"hosts_coordinator", name == "a"},
                 {"failed", false},
                 {"signals_seen", seen_[name]}};
    message.update(more);
    Json answer = coordinator_->hear(message, now_);
    seen_[name] = answer.value("signals_seen", std::size_t{0});
    return answer;
  }

  static Json ended(const Outcome& outcome) { return Json{{"outcome", outcome_to_json(outcome)}}; }

  static Outcome failed(int rank, double seconds, std::string message, std::string code = {}) {
    Outcome outcome{.exit_code = 1};
    outcome.root_cause = Failure{.rank = rank,
                                 .host = "h",
                                 .exit_code = 1,
                                 .code = std::move(code),
                                 .message = std::move(message),
                                 .seconds = seconds};
    return outcome;
  }

  /// Two machines in their first round.
  void run_two(CoordinatorOptions options = {.fewest = 2, .most = 2}) {
    begin(options);
    say("b", "waiting");
    say("a", "waiting");
    ASSERT_EQ(say("b", "waiting")["phase"], "run");
    say("a", "running", 1);
    say("b", "running", 1);
  }

  Coordinator::Time now_{Coordinator::Time{} + 1000s};
  CoordinatorOptions options_;
  std::optional<Coordinator> coordinator_;
  std::uint64_t count_ = 0;
  std::map<std::string, std::size_t> seen_;
};

TEST_F(Machines, LearnThePlanWhenAllAreThere) {
  begin({.fewest = 2, .most = 2, .restart = {.limit = 5}});

  EXPECT_EQ(say("b", "waiting")["phase"], "gather");
  const Json a = say("a", "waiting", 0, {{"ranks", 3}});
  const Json b = say("b", "waiting");

  EXPECT_EQ(a["phase"], "run");
  EXPECT_EQ(a["plan"]["node_rank"], 0);  // the coordinator's machine is the first
  EXPECT_EQ(a["plan"]["first_rank"], 0);
  EXPECT_EQ(b["plan"]["node_rank"], 1);
  EXPECT_EQ(b["plan"]["first_rank"], 3);
  EXPECT_EQ(b["plan"]["world_size"], 5);
  EXPECT_EQ(b["plan"]["master_address"], "10.0.0.1");
  EXPECT_EQ(b["plan"]["master_port"], 4711);
  EXPECT_EQ(b["plan"]["max_restarts"], 5);
  EXPECT_EQ(b["plan"]["job"], "j1");
}

TEST_F(Machines, AreOrderedByTheirNumbers) {
  begin({.fewest = 3, .most = 3});
  say("c", "waiting", 0, {{"node_rank", 1}});
  say("b", "waiting", 0, {{"node_rank", 2}});
  say("a", "waiting", 0, {{"node_rank", 0}});

  EXPECT_EQ(say("c", "waiting", 0, {{"node_rank", 1}})["plan"]["node_rank"], 1);
  EXPECT_EQ(say("b", "waiting", 0, {{"node_rank", 2}})["plan"]["node_rank"], 2);
}

TEST_F(Machines, AMachineThatHasNotHeardThePlanIsNotWaitedForWhenAnotherFailsAtOnce) {
  begin({.fewest = 2, .most = 2, .restart = {.limit = 1}});
  say("a", "waiting");
  say("b", "waiting");
  say("b", "ended", 1, ended(failed(2, 0.0, "no such program")));

  EXPECT_EQ(say("a", "waiting")["phase"], "gather");
  EXPECT_EQ(say("b", "waiting", 1)["phase"], "run");
  const Json a = say("a", "waiting");

  EXPECT_EQ(a["round"], 2);
  EXPECT_EQ(a["plan"]["attempt"], 1);
}

TEST_F(Machines, EndTogetherWithZero) {
  run_two();

  EXPECT_EQ(say("a", "ended", 1, ended({}))["phase"], "run");
  const Json b = say("b", "ended", 1, ended({}));
  const Json a = say("a", "ended", 1, ended({}));

  EXPECT_EQ(b["phase"], "end");
  EXPECT_EQ(a["outcome"]["exit_code"], 0);
  EXPECT_TRUE(coordinator_->finished(now_));
}

TEST_F(Machines, StopWhenOneFailsAndTheFirstCauseOfAllIsSaid) {
  run_two();

  EXPECT_EQ(say("b", "running", 1, {{"failed", true}})["phase"], "stop");
  EXPECT_EQ(say("a", "running", 1)["phase"], "stop");
  say("a", "ended", 1, ended(failed(0, 1.2, "connection closed", "peer_lost")));
  say("b", "ended", 1, ended(failed(2, 1.3, "bad label 11 in sample 42")));
  const Json a = say("a", "ended", 1);

  EXPECT_EQ(a["phase"], "end");
  EXPECT_EQ(a["outcome"]["exit_code"], 1);
  EXPECT_EQ(a["outcome"]["root_cause"]["rank"], 2);
  EXPECT_EQ(a["outcome"]["follow_ups"][0]["rank"], 0);
}

TEST_F(Machines, B032StartAgainTogetherAsOftenAsTheLimitSaysWhoeverFailed) {
  run_two({.fewest = 2, .most = 2, .restart = {.limit = 1}});

  say("b", "ended", 1, ended(failed(2, 1, "")));
  say("a", "ended", 1, ended({}));
  EXPECT_EQ(say("a", "waiting")["phase"], "gather");
  say("b", "waiting");
  const Json a = say("a", "waiting");
  const Json b = say("b", "waiting");
  EXPECT_EQ(a["round"], 2);
  EXPECT_EQ(a["plan"]["attempt"], 1);
  EXPECT_EQ(b["plan"]["attempt"], 1);
  say("a", "ended", 2, ended(failed(0, 1, "")));
  say("b", "ended", 2, ended({}));

  EXPECT_EQ(say("a", "ended", 2)["phase"], "end");
  EXPECT_THAT(say("b", "ended", 2)["why"].get<std::string>(), HasSubstr("--max-restarts 1"));
}

TEST_F(Machines, B032AnAgentThatIsKilledAndBackAtOnceIsNoWayRoundALimitOfZero) {
  run_two();
  now_ += 500ms;

  const Json newcomer = say("z", "waiting", 0, {{"host", "host-b"}, {"address", "10.0.0.2"}});
  EXPECT_EQ(newcomer["phase"], "gather");
  EXPECT_EQ(say("a", "running", 1)["phase"], "stop");
  const Json a = say("a", "ended", 1, ended({}));

  EXPECT_EQ(a["phase"], "end");
  EXPECT_EQ(a["outcome"]["exit_code"], 1);
  EXPECT_THAT(a["outcome"]["root_cause"]["message"].get<std::string>(),
              AllOf(HasSubstr("host-b"), HasSubstr("was lost")));
  EXPECT_EQ(say("z", "waiting", 0, {{"host", "host-b"}})["phase"], "end");
}

TEST_F(Machines, B033ANodeRankThatJoinsTwiceIsRefusedWithBoth) {
  begin({.fewest = 2, .most = 2});
  say("a", "waiting", 0, {{"node_rank", 0}, {"pid", 11}});

  const Json second = say("b", "waiting", 0, {{"node_rank", 0}, {"pid", 22}});

  EXPECT_EQ(second["phase"], "refused");
  EXPECT_EQ(second["message"],
            "node rank 0 joined twice (pid 11 on host host-a, pid 22 on host host-b)");
}

TEST_F(Machines, B033MissingMachinesAreListedAfterTheTimeLimit) {
  begin({.fewest = 3, .most = 3, .join_timeout = 60s});
  say("a", "waiting", 0, {{"node_rank", 0}});
  say("b", "waiting", 0, {{"node_rank", 1}});
  now_ += 10s;
  say("a", "waiting", 0, {{"node_rank", 0}});
  say("b", "waiting", 0, {{"node_rank", 1}});
  for (int i = 0; i < 6; ++i) {
    now_ += 10s;
    say("a", "waiting", 0, {{"node_rank", 0}});
    say("b", "waiting", 0, {{"node_rank", 1}});
  }

  const Json a = say("a", "waiting", 0, {{"node_rank", 0}});

  EXPECT_EQ(a["phase"], "end");
  EXPECT_THAT(a["outcome"]["root_cause"]["message"].get<std::string>(),
              AllOf(HasSubstr("2 of 3 machines came"), HasSubstr("missing: node rank 2")));
}

TEST_F(Machines, ThatWereToldDifferentThingsAreRefused) {
  begin({.fewest = 2, .most = 2});

  const Json other = say("b", "waiting", 0, {{"fewest", 4}, {"most", 4}});

  EXPECT_EQ(other["phase"], "refused");
  EXPECT_EQ(other["message"], "machine host-b was told --nnodes 4, the first one --nnodes 2");
  EXPECT_EQ(say("c", "waiting", 0, {{"protocol", 99}})["phase"], "refused");
  EXPECT_EQ(say("d", "waiting", 0, {{"node_rank", 2}})["phase"], "refused");
}

TEST_F(Machines, AMessageThatComesTwiceIsRefused) {
  begin({.fewest = 2, .most = 2});
  say("a", "waiting");
  --count_;

  EXPECT_EQ(say("a", "waiting")["phase"], "refused");
}

TEST_F(Machines, ASignalOfOneReachesTheOthersOnce) {
  run_two();

  const Json a = say("a", "running", 1, {{"signals", {SIGUSR1}}});
  const Json b = say("b", "running", 1);
  const Json later = say("b", "running", 1);

  EXPECT_THAT(a["signals"].get<std::vector<int>>(), ::testing::IsEmpty());
  EXPECT_THAT(b["signals"].get<std::vector<int>>(), ElementsAre(SIGUSR1));
  EXPECT_THAT(later["signals"].get<std::vector<int>>(), ::testing::IsEmpty());
}

TEST_F(Machines, AStopBySignalIsTheSameCodeEverywhere) {
  run_two({.fewest = 2, .most = 2, .restart = {.limit = 5}});

  say("a", "ended", 1, ended({.exit_code = 143}));
  say("b", "ended", 1, ended({.exit_code = 143}));

  EXPECT_EQ(say("a", "ended", 1)["outcome"]["exit_code"], 143);
}

TEST_F(Machines, ASilentMachineIsLostAndNamed) {
  run_two({.fewest = 2, .most = 2, .lost_after = 15s});
  now_ += 10s;
  say("a", "running", 1);
  now_ += 6s;

  EXPECT_EQ(say("a", "running", 1)["phase"], "stop");
  const Json a = say("a", "ended", 1, ended({}));

  EXPECT_EQ(a["phase"], "end");
  EXPECT_THAT(a["outcome"]["root_cause"]["message"].get<std::string>(),
              AllOf(HasSubstr("host-b"), HasSubstr("no word for 15 s")));
  EXPECT_TRUE(coordinator_->finished(now_));
}

TEST_F(Machines, AnElasticJobGoesOnWithFewerAndGrowsAgain) {
  begin({.fewest = 1, .most = 2, .restart = {.limit = 3}, .last_call = 5s, .lost_after = 15s});
  say("a", "waiting");
  say("b", "waiting");
  say("a", "running", 1);
  say("b", "running", 1);
  now_ += 10s;
  say("a", "running", 1);
  now_ += 6s;
  say("a", "running", 1);  // b is lost
  say("a", "ended", 1, ended({}));
  EXPECT_EQ(say("a", "waiting")["phase"], "gather");
  now_ += 5s;

  const Json alone = say("a", "waiting");

  EXPECT_EQ(alone["phase"], "run");
  EXPECT_EQ(alone["plan"]["world_size"], 2);
  EXPECT_EQ(alone["plan"]["attempt"], 1);
  say("a", "running", 2);
  EXPECT_EQ(say("c", "waiting")["phase"], "gather");
  EXPECT_EQ(say("a", "running", 2)["phase"], "stop");
  say("a", "ended", 2, ended({}));
  say("a", "waiting");
  EXPECT_EQ(say("c", "waiting")["plan"]["world_size"], 4);
}

TEST_F(Machines, ALostMachineThatSpeaksAgainMayComeAnew) {
  begin({.fewest = 1, .most = 2, .restart = {.limit = 3}, .lost_after = 15s});
  say("a", "waiting");
  say("b", "waiting");
  now_ += 10s;
  say("a", "running", 1);
  now_ += 6s;
  say("a", "running", 1);
  say("a", "ended", 1, ended({}));  // all go on without b, whose name is forgotten

  EXPECT_EQ(say("b", "running", 1)["phase"], "gather");
}

TEST_F(Machines, NoProgressOfAllIsFour) {
  run_two({.fewest = 2, .most = 2, .restart = {.limit = 50, .without_progress = 1}});
  Outcome outcome = failed(2, 1, "");
  outcome.furthest_step = 7;

  say("b", "ended", 1, ended(outcome));
  say("a", "ended", 1, ended({}));

  EXPECT_EQ(say("a", "ended", 1)["outcome"]["exit_code"], 4);
}

}  // namespace
}  // namespace yoke::cluster
