// What `yoke train` says and leaves where it cannot train.

#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
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
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class BadInput : public Scene {
 protected:
  BadInput() { write_images(images()); }

  fs::path images() const { return folder() / "images"; }

  ChildResult train(const std::vector<std::string>& more, const core::EnvironmentMap& set = {}) {
    std::vector<std::string> words{"train", "--epochs", "1", "--batch-size", "8"};
    if (std::find(more.begin(), more.end(), "--ranks") == more.end()) {
      words.insert(words.end(), {"--ranks", "2"});
    }
    if (std::find(more.begin(), more.end(), "--data") == more.end()) {
      words.insert(words.end(), {"--data", images().string()});
    }
    if (std::find(more.begin(), more.end(), "--out") == more.end()) {
      words.insert(words.end(), {"--out", (folder() / "out").string()});
    }
    words.insert(words.end(), more.begin(), more.end());
    return yoke(words, set);
  }

  /// One error, the last line, and no result.
  void expect_refused(const ChildResult& result, int exit_code,
                      const std::vector<std::string>& parts) {
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(lines_with("error: ", result.err), 1U) << result.err;
    for (const std::string& part : parts) EXPECT_THAT(last_line(result.err), HasSubstr(part));
    EXPECT_THAT(left_behind(), IsEmpty());
    for (const std::string& file : files_in(folder() / "out")) {
      EXPECT_TRUE(file == "recipe.toml" || file == "failure.json") << "left behind: " << file;
    }
  }
};

TEST_F(BadInput, MissingFolder) {
  const std::string nowhere = (folder() / "nowhere").string();

  expect_refused(train({"--data", nowhere}), 2, {nowhere, "no such file or folder"});
}

TEST_F(BadInput, FolderWithoutImages) {
  fs::create_directory(folder() / "empty");

  expect_refused(train({"--data", (folder() / "empty").string()}), 2, {"train-images-idx3-ubyte"});
}

TEST_F(BadInput, B048TruncatedFileNamesBothSizes) {
  const fs::path file = images() / "train-images-idx3-ubyte";
  const std::string whole = core::read_file(file);
  core::write_atomically(file, whole.substr(0, whole.size() - 5));

  expect_refused(train({}), 1,
                 {file.string(), std::to_string(whole.size()), std::to_string(whole.size() - 5)});
}

TEST_F(BadInput, EmptyFile) {
  const fs::path file = images() / "t10k-labels-idx1-ubyte";
  core::write_atomically(file, "");

  expect_refused(train({}), 1, {file.string()});
}

TEST_F(BadInput, BrokenGzip) {
  const fs::path file = images() / "train-images-idx3-ubyte";
  fs::remove(file);
  core::write_atomically(file.string() + ".gz",
                         std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03garbage", 17));

  expect_refused(train({}), 1, {file.string() + ".gz"});
}

TEST_F(BadInput, ThreeImagesAgainstTwoLabels) {
  write_idx(images() / "train-images-idx3-ubyte", {3, 8, 8}, std::string(3 * 64, 'x'));
  write_idx(images() / "train-labels-idx1-ubyte", {2}, std::string(2, '\0'));

  expect_refused(train({}), 2, {"3 images", "2 labels"});
}

TEST_F(BadInput, LabelOutsideTheClassesNamesTheSample) {
  expect_refused(train({"--num-classes", "3"}), 2, {"sample 3 has label 3", "3 classes"});
}

TEST_F(BadInput, UnknownModelIsGuessed) {
  expect_refused(train({"--model", "smal-cnn"}), 2, {"smal-cnn", "did you mean small-cnn?"});
}

TEST_F(BadInput, UnknownDataIsGuessed) {
  expect_refused(train({"--data", "fasion-mnist"}), 2,
                 {"fasion-mnist", "did you mean fashion-mnist?"});
}

TEST_F(BadInput, UnknownFlagIsGuessed) {
  expect_refused(train({"--epoch", "3"}), 2, {"--epoch", "epochs"});
}

TEST_F(BadInput, NoRanks) {
  expect_refused(train({"--ranks", "0"}), 2, {"--ranks 0", "at least 1"});
}

TEST_F(BadInput, RunFolderBelowAFile) {
  core::write_atomically(folder() / "file", "");

  expect_refused(train({"--out", (folder() / "file/run").string()}), 1,
                 {(folder() / "file/run").string()});
}

TEST_F(BadInput, WeightsThatAreNotThere) {
  expect_refused(train({"--weights", (folder() / "none.pt").string()}), 2, {"none.pt"});
}

TEST_F(BadInput, WeightsOfAnotherModelNameWhatDiffers) {
  ASSERT_EQ(train({"--model", "mlp", "--out", (folder() / "mlp").string()}).exit_code, 0);

  expect_refused(train({"--weights", (folder() / "mlp").string()}), 2,
                 {"conv1.weight", "layers.0.weight"});
}

TEST_F(BadInput, EvalWithoutWeights) {
  const ChildResult result = yoke({"eval"});

  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--weights"));
}

TEST_F(BadInput, FailureIsLeftInTheRunFolder) {
  const ChildResult result = train({"--freeze", "nothing*"});

  EXPECT_EQ(result.exit_code, 2);
  const auto failure =
      core::parse_json(core::read_file(folder() / "out/failure.json"), "failure.json");
  EXPECT_EQ(failure["root_cause"]["code"], "invalid_argument");
  EXPECT_THAT(failure["root_cause"]["message"].get<std::string>(), HasSubstr("nothing*"));
  EXPECT_EQ(train({}).exit_code,
            0);  // a folder in which a run failed before its first step is fresh
  EXPECT_FALSE(fs::exists(folder() / "out/failure.json"));
}

/// A file system of its own, as small as said.
class SmallDisk {
 public:
  SmallDisk(fs::path place, const std::string& size) : place_(std::move(place)) {
    fs::create_directory(place_);
    mounted_ = ::mount("tmpfs", place_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(place_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  [[nodiscard]] bool mounted() const noexcept { return mounted_; }

 private:
  fs::path place_;
  bool mounted_ = false;
};

TEST_F(BadInput, FullDiskLeavesNoHalfWrittenFile) {
  // The small CNN's weights take 1.7 MB.
  const SmallDisk disk(folder() / "disk", "200k");
  if (!disk.mounted())
    GTEST_SKIP() << "a file system of a limited size needs root: mount(2) was refused";

  const ChildResult at_checkpoint = train({"--out", (folder() / "disk/first").string()});
  EXPECT_EQ(at_checkpoint.exit_code, 1);
  EXPECT_THAT(last_line(at_checkpoint.err),
              AllOf(HasSubstr("checkpoints: "), HasSubstr("needed, ")));
  EXPECT_THAT(files_in(folder() / "disk/first/checkpoints"), IsEmpty());

  const ChildResult result =
      train({"--checkpoint-every", "-1", "--out", (folder() / "disk/run").string()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(last_line(result.err),
              AllOf(HasSubstr("No space left on device"), HasSubstr("state_dict.pt")));
  for (const std::string& file : files_in(folder() / "disk/run")) {
    EXPECT_THAT(file, AllOf(Not(HasSubstr("state_dict")), Not(HasSubstr("safetensors")),
                            Not(HasSubstr("result"))));
  }
  EXPECT_THAT(left_behind(), IsEmpty());
}

}  // namespace
}  // namespace yoke::whole
