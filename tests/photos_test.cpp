// `yoke train` and `yoke eval` on image files: class folders, tar shards, an LMDB.

#include <signal.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scene.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"
#include "yoke/feed/encode.hpp"
#include "yoke/feed/image.hpp"

namespace yoke::whole {
namespace {

namespace fs = std::filesystem;
using core::ChildResult;
using core::Json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

struct Shade {
  std::string name;
  int red;
  int green;
  int blue;
};

const std::vector<Shade> kShades{
    {"autumn", 200, 110, 30}, {"meadow", 40, 180, 60}, {"sky", 60, 110, 220}};

// Light falling off to one corner, and grain: no two of them are alike.
feed::Image photo(const Shade& shade, int number) {
  const int width = 40 + 5 * (number % 4);
  const int height = 36 + 7 * (number % 3);
  feed::Image image(width, height);
  auto grain = static_cast<std::uint32_t>(number + 1);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      grain = grain * 1664525U + 1013904223U;
      const int light = 256 - 2 * (x + y) / 3 - static_cast<int>(grain >> 26);
      std::uint8_t* pixel = image.row(y) + 4 * x;
      pixel[0] = static_cast<std::uint8_t>(shade.red * light / 256);
      pixel[1] = static_cast<std::uint8_t>(shade.green * light / 256);
      pixel[2] = static_cast<std::uint8_t>(shade.blue * light / 256);
    }
  }
  return image;
}

void write_photos(const fs::path& root, int each, int first = 0) {
  for (const Shade& shade : kShades) {
    fs::create_directories(root / shade.name);
    for (int i = 0; i < each; ++i) {
      const auto bytes = feed::encode_jpeg(photo(shade, first + i), {.quality = 95});
      core::write_atomically(root / shade.name / core::text("photo", i, ".jpg"),
                             {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
  }
}

class Photos : public Scene {
 protected:
  Photos() {
    write_photos(train(), 8);
    write_photos(valid(), 3, 100);
  }

  [[nodiscard]] fs::path train() const { return folder() / "train"; }
  [[nodiscard]] fs::path valid() const { return folder() / "val"; }
  [[nodiscard]] std::string run_folder(const std::string& name) const {
    return (folder() / name).string();
  }

  // 24 photos, 8 a step over two ranks: 3 steps an epoch.
  [[nodiscard]] Words words(const std::string& out, const Words& more = {}) const {
    Words all{"train",
              "--data",
              train().string(),
              "--valid",
              valid().string(),
              "--model",
              "small-cnn",
              "--ranks",
              "2",
              "--batch-size",
              "4",
              "--epochs",
              "6",
              "--lr",
              "0.02",
              "--seed",
              "7",
              "--train-crop-size",
              "32",
              "--out",
              run_folder(out)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  [[nodiscard]] Json result_of(const std::string& name) const {
    return core::parse_json(core::read_file(folder() / name / "result.json"), "result.json");
  }
  [[nodiscard]] std::string weights_of(const std::string& name) const {
    return core::read_file(folder() / name / "model.safetensors");
  }
  /// Of 3 steps each.
  void remove_checkpoints_between_epochs(const std::string& name) const {
    const fs::path checkpoints = folder() / name / "checkpoints";
    for (const std::string& entry : files_in(checkpoints)) {
      const bool is_whole = entry.starts_with("step-");
      if (is_whole && std::stoll(entry.substr(5)) % 3 == 0) fs::remove_all(checkpoints / entry);
    }
  }
  ChildResult train_on(const std::string& data, const std::string& name) {
    return yoke(words(name, {"--data", run_folder(data)}));
  }
};

TEST_F(Photos, TrainAResnetOnTwoRanksAndAreEvaluatedTheSameAgain) {
  const ChildResult trained = yoke(words("a", {"--model", "resnet18", "--epochs", "1", "--json"}));

  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(result_of("a")["steps"], 3);
  EXPECT_EQ(core::read_file(folder() / "a/classes.txt"), "autumn\nmeadow\nsky\n");
  EXPECT_THAT(trained.err, HasSubstr("3 classes: autumn = 0, meadow = 1, sky = 2"));
  EXPECT_THAT(core::read_file(folder() / "a/recipe.toml"),
              AllOf(HasSubstr("data = \"" + train().string() + "\""),
                    HasSubstr("mean = [0.485, 0.456, 0.406]"), HasSubstr("train-crop-size = 32"),
                    HasSubstr("val-crop-size = 32"), HasSubstr("val-resize-size = 36")));
  EXPECT_THAT(left_behind(), IsEmpty());

  const ChildResult evaluated = yoke({"eval", "--weights", run_folder("a"), "--json"});

  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  const Json again = core::parse_json(evaluated.out, "stdout");
  EXPECT_EQ(again["samples"], 9);
  EXPECT_EQ(again["accuracy"], result_of("a")["accuracy"]);
}

TEST_F(Photos, AreToldApartByASmallNet) {
  ASSERT_EQ(yoke(words("a")).exit_code, 0);

  EXPECT_GT(result_of("a")["accuracy"], 0.9);
}

TEST_F(Photos, InShardsAndInALmdbTrainToTheSameBitsAsInFolders) {
  ASSERT_EQ(yoke({"data", "pack", train().string(), run_folder("tar")}).exit_code, 0);
  ASSERT_EQ(
      yoke({"data", "pack", train().string(), run_folder("lmdb"), "--format", "lmdb"}).exit_code,
      0);
  ASSERT_EQ(yoke(words("a")).exit_code, 0);

  const ChildResult from_tar = train_on("tar", "b");
  const ChildResult from_lmdb = train_on("lmdb", "c");

  ASSERT_EQ(from_tar.exit_code, 0) << from_tar.err;
  ASSERT_EQ(from_lmdb.exit_code, 0) << from_lmdb.err;
  EXPECT_EQ(weights_of("b"), weights_of("a"));
  EXPECT_EQ(weights_of("c"), weights_of("a"));
}

TEST_F(Photos, TrainToTheSameBitsOnAnyNumberOfThreads) {
  const Words augmented{"--auto-augment", "ra", "--mixup-alpha", "0.2", "--cutmix-alpha", "1"};
  for (const std::string threads : {"0", "1", "3"}) {
    Words more = augmented;
    more.insert(more.end(), {"--workers", threads, "--epochs", "2"});
    const ChildResult result = yoke(words(threads, more));

    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(weights_of(threads), weights_of("0")) << threads << " threads";
  }
}

TEST_F(Photos, KilledAmidAnEpochGoOnToTheSameBitsOnAnotherNumberOfThreads) {
  const Words augmented{"--auto-augment", "ra", "--mixup-alpha", "0.2", "--epochs", "60"};
  Words whole = augmented;
  whole.insert(whole.end(), {"--checkpoint-every", "-1", "--workers", "1"});
  ASSERT_EQ(yoke(words("a", whole)).exit_code, 0);
  Words killed = augmented;
  killed.insert(killed.end(), {"--checkpoint-every", "4", "--workers", "1"});

  const auto job = start(words("b", killed));
  ASSERT_TRUE(job->wait_for("epoch 5/", std::chrono::seconds(60)));
  job->signal(SIGKILL);
  (void)job->wait();
  EXPECT_THAT(left_behind(), IsEmpty());
  remove_checkpoints_between_epochs("b");
  const ChildResult rest = yoke({"train", "--resume", run_folder("b"), "--workers", "3"});

  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(rest.err, HasSubstr("going on from " + run_folder("b") + "/checkpoints/step-"));
  EXPECT_EQ(weights_of("b"), weights_of("a"));
}

TEST_F(Photos, B042OfAHiddenFolderAreLeftOutWithOneWarning) {
  fs::create_directories(train() / ".ipynb_checkpoints");
  fs::copy_file(train() / "sky/photo0.jpg", train() / ".ipynb_checkpoints/photo0-checkpoint.jpg");
  core::write_atomically(train() / ".DS_Store", "");

  const ChildResult result = yoke(words("a", {"--max-steps", "1"}));

  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(lines_with(".ipynb_checkpoints", result.err), 1U) << result.err;
  EXPECT_EQ(core::read_file(folder() / "a/classes.txt"), "autumn\nmeadow\nsky\n");
}

TEST_F(Photos, ThatWereRenamedDoNotGoOn) {
  ASSERT_EQ(yoke(words("a", {"--max-steps", "4"})).exit_code, 0);
  fs::rename(train() / "meadow", train() / "water");
  fs::rename(valid() / "meadow", valid() / "water");

  const ChildResult rest =
      yoke({"train", "--resume", run_folder("a"), "--max-steps", "6", "--force", "recipe"});

  EXPECT_EQ(rest.exit_code, 2);
  EXPECT_THAT(rest.err, HasSubstr("the data are not those that it began with"));
  EXPECT_EQ(core::read_file(folder() / "a/classes.txt"), "autumn\nmeadow\nsky\n");
}

TEST_F(Photos, B043TakeTheirClassNumbersFromTraining) {
  ASSERT_EQ(yoke(words("a")).exit_code, 0);
  fs::remove_all(valid() / "autumn");
  fs::rename(train(), folder() / "gone");

  const ChildResult result = yoke({"eval", "--weights", run_folder("a"), "--json"});

  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(lines_with("no folder for 1 class of training: autumn", result.err), 1U) << result.err;
  EXPECT_GT(core::parse_json(result.out, "stdout")["accuracy"], 0.8);

  fs::rename(valid() / "sky", valid() / "sea");
  const ChildResult unknown = yoke({"eval", "--weights", run_folder("a")});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("sea"));
}

TEST_F(Photos, B044ACutOneEndsTheRunOrIsLeftOutAsAsked) {
  const fs::path cut = train() / "meadow/photo5.jpg";
  fs::resize_file(cut, fs::file_size(cut) - 54);
  core::write_atomically(train() / "sky/photo2.jpg", "");

  const ChildResult raised = yoke(words("a"));
  const ChildResult skipped = yoke(words("b", {"--bad-samples", "skip"}));
  const ChildResult substituted = yoke(words("c", {"--bad-samples", "substitute"}));

  EXPECT_EQ(raised.exit_code, 1);
  EXPECT_THAT(raised.err, AnyOf(ContainsRegex("sample 13 .*meadow/photo5.jpg"),
                                ContainsRegex("sample 18 .*sky/photo2.jpg")));
  EXPECT_THAT(left_behind(), IsEmpty());
  for (const char* run : {"b", "c"}) {
    SCOPED_TRACE(run);
    EXPECT_EQ(result_of(run)["steps"], 18);
    const std::string list = core::read_file(folder() / run / "bad_samples.jsonl");
    EXPECT_GE(lines_with("\"index\":13,\"origin\":\"" + cut.string(), list), 1U);
    EXPECT_GE(lines_with("\"index\":18,", list), 1U);
  }
  EXPECT_EQ(skipped.exit_code, 0) << skipped.err;
  EXPECT_EQ(substituted.exit_code, 0) << substituted.err;
}

TEST_F(Photos, TooManyBadOnesEndTheRun) {
  for (int i = 0; i < 6; ++i)
    core::write_atomically(train() / "sky" / core::text("photo", i, ".jpg"), "no image");

  const ChildResult result =
      yoke(words("a", {"--bad-samples", "skip", "--most-bad", "1", "--ranks", "1"}));

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("2 of 24 images are bad, and 1 are allowed")));
}

TEST_F(Photos, TrainInTheExampleProgram) {
  const std::string out = run_folder("model.safetensors");

  const ChildResult result =
      run(binary_dir() + "/examples/image_folder",
          {train().string(), valid().string(), out, "18", "1", "32"}, {{"YOKE_RANKS", "2"}});

  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(lines_with("accuracy ", result.out), 1U) << result.out;
  EXPECT_TRUE(fs::exists(out));
  EXPECT_THAT(left_behind(), IsEmpty());
}

struct Refusal {
  std::string called;
  Words more;
  std::string words;
};

TEST_F(Photos, ThatCannotBeAreRefusedOnceAndBeforeRanksStart) {
  fs::create_directories(folder() / "none");
  fs::create_directories(folder() / "hollow/cat");
  core::write_atomically(folder() / "hollow/cat/readme.txt", "no image");
  fs::create_directories(folder() / "both");
  fs::rename(train(), folder() / "both/train");
  fs::rename(valid(), folder() / "both/val");
  const std::string whole = run_folder("both/train");
  const std::vector<Refusal> refusals{
      {"empty folder", {"--data", run_folder("none")}, "none"},
      {"no image", {"--data", run_folder("hollow")}, "no image in cat"},
      {"both parts", {"--data", run_folder("both")}, "both/train"},
      {"nothing to evaluate on", {"--data", whole, "--valid", run_folder("none")}, "none"},
      {"no such path", {"--data", whole, "--valid", run_folder("nowhere")}, "nowhere"}};
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.called);
    Words all{"train", "--valid", run_folder("both/val"), "--out", run_folder("a")};
    all.insert(all.end(), refusal.more.begin(), refusal.more.end());

    const ChildResult result = yoke(all);

    EXPECT_GT(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr(refusal.words));
    EXPECT_EQ(lines_with("error: ", result.err), 1U) << result.err;
  }
}

}  // namespace
}  // namespace yoke::whole
