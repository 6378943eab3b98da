// The programs in examples/, on little data.

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scene.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"

namespace yoke::whole {
namespace {

namespace fs = std::filesystem;
using core::ChildResult;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Examples : public Scene {
 protected:
  static std::string example(const std::string& name) { return binary_dir() + "/examples/" + name; }
};

TEST_F(Examples, FashionMnistTrainsOnEveryRankCountAlike) {
  write_images(folder() / "images", {.train = 64, .test = 21});
  std::string one_rank;
  for (const std::string ranks : {"1", "2"}) {
    const fs::path out = folder() / ("model" + ranks + ".safetensors");

    const ChildResult result =
        run(example("fashion_mnist"), {(folder() / "images").string(), out.string()},
            {{"YOKE_RANKS", ranks}});

    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(lines_with("accuracy ", result.out), 1U) << result.out;
    EXPECT_TRUE(fs::exists(out));
    EXPECT_THAT(left_behind(), IsEmpty());
  }
}

TEST_F(Examples, OwnMainIsAloneWithoutALauncher) {
  const ChildResult result = run(example("own_main"), {});

  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "rank 0 of 1: gradient 1.00\n");
}

TEST_F(Examples, OwnMainJoinsTheRanksOfALauncher) {
  const ChildResult result = yoke({"launch", "--ranks", "3", "--", example("own_main")});

  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(lines_with(" of 3: gradient 2.00", result.out), 3U) << result.out;  // (1 + 2 + 3) / 3
}

TEST_F(Examples, OwnModelHasTheFlagsOfTrain) {
  write_images(folder() / "images");
  const std::string out = (folder() / "run").string();

  const ChildResult result = run(
      example("own_model"), {"--data", (folder() / "images").string(), "--ranks", "2", "--epochs",
                             "4", "--batch-size", "4", "--lr", "0.02", "--out", out, "--json"});

  ASSERT_EQ(result.exit_code, 0) << result.err;
  const core::Json printed = core::parse_json(result.out, "stdout");
  EXPECT_EQ(printed["model"], "own");
  EXPECT_EQ(printed["ranks"], 2);
  EXPECT_GT(printed["accuracy"], 0.9);
  EXPECT_TRUE(fs::exists(out + "/state_dict.pt"));
}

TEST_F(Examples, OwnModelAnswersHelpWithItsOwnName) {
  const ChildResult result = run(example("own_model"), {"--help"});

  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, AllOf(HasSubstr("own_model [flags]"), HasSubstr("--batch-size")));
}

TEST_F(Examples, OwnModelLeavesAFailureInTheRunFolder) {
  write_images(folder() / "images");
  const fs::path out = folder() / "run";

  const ChildResult result =
      run(example("own_model"),
          {"--data", (folder() / "images").string(), "--freeze", "third*", "--out", out.string()});

  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(lines_with("error: ", result.err), 1U) << result.err;
  EXPECT_THAT(core::read_file(out / "failure.json"), HasSubstr("third*"));
}

}  // namespace
}  // namespace yoke::whole
