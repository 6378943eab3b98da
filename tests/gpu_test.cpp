// `yoke train` on the cards of this machine; skipped (77) where there are too few.

#include <cstdio>
#include <cstdlib>
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

using core::ChildResult;
using core::Json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The first cards of this machine, by number.
std::string first_cards(int count) {
  std::string list = "0";
  for (int card = 1; card < count; ++card) list += "," + std::to_string(card);
  return list;
}

int cards_here() {
  const ChildResult listed = core::run_child({.command = {"nvidia-smi", "-L"}});
  return static_cast<int>(lines_with("GPU ", listed.out));
}

class Gpu : public Scene, public ::testing::WithParamInterface<int> {
 protected:
  /// Made-up images, enough steps to see the loss fall.
  ChildResult train(const std::vector<std::string>& more) {
    std::vector<std::string> words{
        "train",      "--data", "synthetic", "--epochs", "2",     "--batch-size",
        "64",         "--lr",   "0.01",      "--json",   "--out", (folder() / "run").string(),
        "--overwrite"};
    words.insert(words.end(), more.begin(), more.end());
    return yoke(words, {{"CUDA_VISIBLE_DEVICES", first_cards(GetParam())}});
  }
};

TEST_P(Gpu, EveryVisibleCardTrains) {
  const ChildResult result = train({});

  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json kept = core::parse_json(result.out, "stdout");
  EXPECT_EQ(kept["ranks"], GetParam());
  EXPECT_EQ(kept["device"], "cuda");
  EXPECT_GT(kept["accuracy"], 0.9);
  EXPECT_THAT(left_behind(), IsEmpty());
}

TEST_P(Gpu, DataParallelTrainsInOneProcess) {
  const ChildResult result = train({"--parallel", "dp"});

  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json kept = core::parse_json(result.out, "stdout");
  EXPECT_EQ(kept["ranks"], 1);
  EXPECT_GT(kept["accuracy"], 0.9);
}

TEST_P(Gpu, EvaluationGivesTheSameNumbersOnTheCpu) {
  const ChildResult trained = train({});
  const ChildResult evaluated =
      yoke({"eval", "--weights", (folder() / "run").string(), "--ranks", "1", "--json"});

  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  const Json on_cards = core::parse_json(trained.out, "stdout");
  const Json on_cpu = core::parse_json(evaluated.out, "stdout");
  // TF32 is off by default, so only the order of float32 sums differs.
  EXPECT_NEAR(on_cpu["loss"].get<double>(), on_cards["loss"].get<double>(), 1e-4);
}

TEST_P(Gpu, MoreRanksThanCardsAreRefusedBeforeTheStart) {
  const ChildResult result = train({"--ranks", std::to_string(GetParam() + 1)});

  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(last_line(result.err), HasSubstr("CUDA_VISIBLE_DEVICES=" + first_cards(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Cards, Gpu, ::testing::Values(1, 2));

}  // namespace
}  // namespace yoke::whole

// usage: whole_gpu_test CARDS: the tests of so many cards
int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const int wanted = argc > 1 ? std::atoi(argv[1]) : 1;
  const int here = yoke::whole::cards_here();
  if (here < wanted) {
    std::printf("skipped: needs %d usable cards, this machine has %d\n", wanted, here);
    return 77;
  }
  ::testing::GTEST_FLAG(filter) = "Cards/Gpu.*/" + std::to_string(wanted - 1);
  return RUN_ALL_TESTS();
}
