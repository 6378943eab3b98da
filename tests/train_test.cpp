// `yoke train` and `yoke eval` on small images, with two ranks.

#include <algorithm>
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
using core::ChildResult;
using core::Json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

class Train : public Scene {
 protected:
  Train() { write_images(folder() / "images"); }

  /// Words of a run of two ranks that ends within a second.
  std::vector<std::string> words(const std::string& out,
                                 const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"train",
                                 "--data",
                                 (folder() / "images").string(),
                                 "--ranks",
                                 "2",
                                 "--epochs",
                                 "2",
                                 "--batch-size",
                                 "4",
                                 "--lr",
                                 "0.05",
                                 "--seed",
                                 "7",
                                 "--workers",
                                 "0",
                                 "--out",
                                 (folder() / out).string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string run_folder(const std::string& name) const { return (folder() / name).string(); }
};

TEST_F(Train, TwoRanksTrainSaveAndReport) {
  const ChildResult result = yoke(words("a", {"--json"}));

  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json printed = core::parse_json(result.out, "stdout");  // one object and nothing else
  const Json kept = core::parse_json(core::read_file(folder() / "a/result.json"), "result.json");
  EXPECT_EQ(printed, kept);
  EXPECT_EQ(kept["ranks"], 2);
  EXPECT_EQ(kept["device"], "cpu");
  EXPECT_EQ(kept["epochs"], 2);
  EXPECT_EQ(kept["steps"], 12);  // 48 images, 8 a step, 2 epochs
  EXPECT_GT(kept["accuracy"], 0.9);
  EXPECT_GT(kept["images_per_second"], 0);
  EXPECT_GT(kept["seconds_to_first_step"], 0);
  EXPECT_EQ(kept["state_dict"], fs::absolute(folder() / "a/state_dict.pt").string());
  EXPECT_TRUE(fs::exists(kept["safetensors"].get<std::string>()));
  EXPECT_THAT(files_in(folder() / "a"),
              IsSupersetOf({"log.jsonl", "metrics.csv", "model.safetensors", "recipe.toml",
                            "result.json", "state_dict.pt"}));
  EXPECT_THAT(files_in(folder() / "a"), Contains(HasSubstr("events.out.tfevents.")));
  EXPECT_THAT(left_behind(), IsEmpty());
}

TEST_F(Train, PipeGetsPlainLines) {
  const ChildResult result = yoke(words("a"));

  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("\nepoch 1/2  loss "), HasSubstr("eval/accuracy"),
                                Not(HasSubstr("\r"))));
  EXPECT_THAT(result.out, AllOf(HasSubstr("accuracy "), HasSubstr("images/s on 2 ranks (cpu)"),
                                HasSubstr("/a/state_dict.pt\n")));
}

/// The same words on a terminal; what it shows comes back.
class OnTerminal : public Train {
 protected:
  ChildResult on_terminal(const std::vector<std::string>& all) {
    std::string line = binary_dir() + "/bin/yoke";
    for (const std::string& word : all) line += " '" + word + "'";
    return run("script", {"--quiet", "--return", "--command", line, "/dev/null"});
  }
};

TEST_F(OnTerminal, RunShowsABar) {
  const ChildResult result = on_terminal(words("a"));

  ASSERT_EQ(result.exit_code, 0) << result.out;
  EXPECT_THAT(result.out, AllOf(HasSubstr("\r\x1b[Kepoch 1/2 ["), HasSubstr("epoch 2/2  loss ")));
}

TEST_F(OnTerminal, BarIsGoneBeforeAnError) {
  const ChildResult result = on_terminal(words("a", {"--lr", "1e30"}));

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, AllOf(HasSubstr("\r\x1b[Kepoch 1/2 ["), HasSubstr("the loss is ")));
  // What follows the last drawn bar is its erasure, not somebody's words.
  const std::string rest = result.out.substr(result.out.rfind("epoch 1/2 ["));
  EXPECT_LT(rest.find("\r\x1b[K"), rest.find("warning: ")) << rest;
}

TEST_F(Train, InstalledCopyRunsWhereverItWasMoved) {
  const fs::path prefix = folder() / "elsewhere";
  const fs::path build = binary_dir();
  for (const char* file : {"bin/yoke", "libexec/yoke/yoke-train"}) {
    fs::create_directories((prefix / file).parent_path());
    fs::copy_file(build / file, prefix / file);
  }
  fs::create_directories(prefix / "share/yoke");
  core::write_atomically(prefix / "share/yoke/build.json", "{\"torch_dir\": \"/nowhere/torch\"}");

  const ChildResult lost = run((prefix / "bin/yoke").string(), words("a"));
  const ChildResult found =
      run((prefix / "bin/yoke").string(), words("a"), {{"YOKE_TORCH_DIR", YOKE_TORCH_FOLDER}});

  EXPECT_EQ(lost.exit_code, 3);
  EXPECT_THAT(lost.err, AllOf(HasSubstr("/nowhere/torch"), HasSubstr("YOKE_TORCH_DIR")));
  EXPECT_EQ(found.exit_code, 0) << found.err;

  core::write_atomically(prefix / "share/yoke/build.json",
                         "{\"torch\": \"1.13.1\", \"torch_dir\": \"/nowhere/torch\"}");
  const ChildResult other =
      run((prefix / "bin/yoke").string(), words("b"), {{"YOKE_TORCH_DIR", YOKE_TORCH_FOLDER}});
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_THAT(other.err, AllOf(HasSubstr(YOKE_TORCH_FOLDER), HasSubstr("built with torch 1.13.1")));
}

TEST_F(Train, RanksOfALauncherStartNoRanks) {
  std::vector<std::string> all{"launch", "--ranks", "2", "--", binary_dir() + "/bin/yoke"};
  for (const std::string& word : words("a", {"--json"})) all.push_back(word);

  const ChildResult result = yoke(all);

  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(core::parse_json(result.out, "stdout")["ranks"], 2);
}

TEST_F(Train, EvalReadsTheRunsRecipeAndGivesTheSameNumbers) {
  ASSERT_EQ(yoke(words("a")).exit_code, 0);

  const ChildResult result = yoke({"eval", "--weights", run_folder("a"), "--json"});

  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json trained = core::parse_json(core::read_file(folder() / "a/result.json"), "result.json");
  const Json evaluated = core::parse_json(result.out, "stdout");
  EXPECT_EQ(evaluated["accuracy"], trained["accuracy"]);
  EXPECT_NEAR(evaluated["loss"].get<double>(), trained["loss"].get<double>(),
              1e-6);  // float32, another division into ranks
  EXPECT_EQ(evaluated["samples"], 20);
  EXPECT_EQ(evaluated["ranks"], 2);  // as the recipe says
}

TEST_F(Train, SameRunTwiceGivesEqualBits) {
  ASSERT_EQ(yoke(words("a")).exit_code, 0);
  ASSERT_EQ(yoke(words("b")).exit_code, 0);

  EXPECT_EQ(core::read_file(folder() / "a/model.safetensors"),
            core::read_file(folder() / "b/model.safetensors"));
}

TEST_F(Train, ResolvedRecipeRepeatsTheRun) {
  ASSERT_EQ(yoke(words("a")).exit_code, 0);

  const ChildResult again =
      yoke({"train", "--recipe", run_folder("a") + "/recipe.toml", "--out", run_folder("b")});

  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(core::read_file(folder() / "a/model.safetensors"),
            core::read_file(folder() / "b/model.safetensors"));
}

TEST_F(Train, WeightsOfOtherClassesGetANewHead) {
  ASSERT_EQ(yoke(words("a")).exit_code, 0);
  write_images(folder() / "three", {.classes = 3});

  const ChildResult result =
      yoke({"train", "--data", (folder() / "three").string(), "--weights", run_folder("a"),
            "--freeze", "conv*", "--epochs", "1", "--batch-size", "8", "--out", run_folder("b")});

  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("new head fc2 for 3 classes; the weights have 4"));
}

TEST_F(Train, FreezePatternWithoutAParameterNamesTheNearest) {
  const ChildResult result = yoke(words("a", {"--freeze", "conv1.wieght"}));

  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(last_line(result.err),
              AllOf(HasSubstr("freeze conv1.wieght"), HasSubstr("conv1.weight")));
}

TEST_F(Train, OtherFormsOfParallelTrainToo) {
  for (const std::vector<std::string>& form :
       {std::vector<std::string>{"--parallel", "dp", "--device-ids", "0,1"},
        std::vector<std::string>{"--parallel", "none"}}) {
    const std::string out = run_folder(form[1]);
    std::vector<std::string> all{"train",    "--data", (folder() / "images").string(),
                                 "--epochs", "2",      "--batch-size",
                                 "8",        "--seed", "7",
                                 "--lr",     "0.05",   "--out",
                                 out};
    all.insert(all.end(), form.begin(), form.end());

    const ChildResult result = yoke(all);

    ASSERT_EQ(result.exit_code, 0) << form[1] << ": " << result.err;
    EXPECT_GT(core::parse_json(core::read_file(out + "/result.json"), "result")["accuracy"], 0.9)
        << form[1];
  }
}

TEST_F(Train, EveryOptionOfTheLoopWorksTogether) {
  const ChildResult result = yoke(words("a", {"--accumulate",
                                              "2",
                                              "--clip-norm",
                                              "5",
                                              "--schedule",
                                              "cosine",
                                              "--warmup-steps",
                                              "2",
                                              "--ema",
                                              "0.5",
                                              "--keep-best",
                                              "--early-stop",
                                              "5",
                                              "--optimizer",
                                              "adamw",
                                              "--lr",
                                              "0.01",
                                              "--channels-last",
                                              "--log-every",
                                              "2"}));

  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(files_in(folder() / "a"), Contains("best.pt"));
  const std::string log = core::read_file(folder() / "a/log.jsonl");
  EXPECT_EQ(lines_with("\"kind\":\"steps\"", log), 3U);  // 6 optimizer steps in all
  EXPECT_EQ(lines_with("\"kind\":\"epoch\"", log), 2U);
}

TEST_F(Train, PrintConfigStartsNothing) {
  const ChildResult result = yoke(words("a", {"--print-config"}));

  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("batch-size = 4  # from flag\n"));
  EXPECT_FALSE(fs::exists(folder() / "a"));
}

TEST_F(Train, RunFolderWithFilesIsKeptUnlessSaidOtherwise) {
  ASSERT_EQ(yoke(words("a")).exit_code, 0);
  const std::string before = core::read_file(folder() / "a/model.safetensors");

  const ChildResult refused = yoke(words("a", {"--seed", "8"}));
  const std::string after_refusal = core::read_file(folder() / "a/model.safetensors");
  const ChildResult taken = yoke(words("a", {"--seed", "8", "--overwrite"}));

  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--overwrite"));
  EXPECT_EQ(after_refusal, before);
  EXPECT_EQ(taken.exit_code, 0) << taken.err;
  EXPECT_NE(core::read_file(folder() / "a/model.safetensors"), before);
}

}  // namespace
}  // namespace yoke::whole
