#include "yoke/start/start.hpp"

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/settings/report.hpp"

namespace yoke::start {
namespace {

namespace fs = std::filesystem;
using launch::MachineResources;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Request request(std::vector<std::string> words, const core::EnvironmentMap& variables = {}) {
  words.insert(words.end(), {"--data", "synthetic"});
  return train_request(words, variables, settings::train_schema());
}

launch::LaunchOptions options(const std::vector<std::string>& words,
                              const MachineResources& machine,
                              const core::EnvironmentMap& variables = {}) {
  return rank_options(request(words, variables), machine, variables);
}

/// The error that `act` ends with.
template <class Act>
Error error_of(Act act) {
  try {
    act();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(Code::internal, "");
}

TEST(Ranks, OnePerVisibleGpuElseOne) {
  EXPECT_EQ(options({}, {.gpus = 4}).ranks, 4);
  EXPECT_EQ(options({}, {.gpus = 0}).ranks, 1);
  EXPECT_EQ(options({"--ranks", "2"}, {.gpus = 0}).ranks, 2);
}

TEST(Ranks, ThreeOnTwoGpusAreRefused) {
  const Error error = error_of([] { (void)options({"--ranks", "3"}, {.gpus = 2}); });

  EXPECT_EQ(error.code(), Code::unsupported);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("--ranks 3"), HasSubstr("2 visible GPUs")));
}

TEST(Ranks, VariableIsQuotedByItsName) {
  const Error error = error_of([] { (void)options({}, {.gpus = 2}, {{"YOKE_RANKS", "3"}}); });

  EXPECT_THAT(error.message(), HasSubstr("YOKE_RANKS 3"));
}

TEST(Ranks, OneProcessServesTheOtherForms) {
  EXPECT_EQ(options({"--parallel", "dp"}, {.gpus = 4}).ranks, 1);
  EXPECT_EQ(options({"--parallel", "none"}, {.gpus = 4}).ranks, 1);
}

TEST(Ranks, DeviceIdsBecomeVisibleDevicesOneRankEach) {
  const launch::LaunchOptions plain = options({"--device-ids", "3,1"}, {.gpus = 4});
  const launch::LaunchOptions behind_a_filter =
      options({"--device-ids", "1"}, {.gpus = 2}, {{"CUDA_VISIBLE_DEVICES", "GPU-aa, GPU-bb"}});

  EXPECT_EQ(plain.ranks, 2);
  EXPECT_EQ(plain.extra.at("CUDA_VISIBLE_DEVICES"), "3,1");
  EXPECT_EQ(behind_a_filter.extra.at("CUDA_VISIBLE_DEVICES"), "GPU-bb");
}

TEST(Ranks, DataParallelPicksItsDevicesItself) {
  const launch::LaunchOptions made =
      options({"--parallel", "dp", "--device-ids", "1,2"}, {.gpus = 4});

  EXPECT_FALSE(made.extra.contains("CUDA_VISIBLE_DEVICES"));
}

TEST(Ranks, DeviceThatIsNotThereIsRefused) {
  const Error error = error_of([] { (void)options({"--device-ids", "0,2"}, {.gpus = 2}); });

  EXPECT_EQ(error.code(), Code::unsupported);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("device 2"), HasSubstr("shows 2")));
}

TEST(Ranks, SettingsThatOthersReadBecomeVariables) {
  const launch::LaunchOptions made = options(
      {"--backend", "gloo", "--timeout", "1.5", "--threads", "3", "--max-restarts", "2"}, {});

  EXPECT_EQ(made.extra.at("YOKE_BACKEND"), "gloo");
  EXPECT_EQ(made.extra.at("YOKE_TIMEOUT"), "2");  // whole seconds, never less than asked for
  EXPECT_EQ(made.extra.at("OMP_NUM_THREADS"), "3");
  EXPECT_EQ(made.restart.limit, 2);
}

TEST(Ranks, RankOfALauncherStartsNone) {
  EXPECT_FALSE(is_rank({}));
  EXPECT_TRUE(is_rank({{"TORCHELASTIC_RUN_ID", "a"},
                       {"RANK", "0"},
                       {"WORLD_SIZE", "1"},
                       {"LOCAL_RANK", "0"},
                       {"LOCAL_WORLD_SIZE", "1"},
                       {"MASTER_ADDR", "127.0.0.1"},
                       {"MASTER_PORT", "29500"}}));
}

TEST(Requests, HelpAndPrintConfigAreAnswers) {
  EXPECT_THAT(*request({"--help"}).answer, HasSubstr("--batch-size"));
  EXPECT_THAT(*request({"--print-config", "--lr", "0.2"}).answer,
              HasSubstr("lr = 0.2  # from flag"));
  EXPECT_FALSE(request({}).answer);
}

class Folder : public ::testing::Test {
 protected:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "yoke-start-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Folder() override { fs::remove_all(folder_); }

  void put(const std::string& name) const { core::write_atomically(folder_ / name, name); }
  bool has(const std::string& name) const { return fs::exists(folder_ / name); }
  void open(std::vector<std::string> more = {}, const core::EnvironmentMap& variables = {}) const {
    more.insert(more.end(), {"--out", folder_.string()});
    open_run_folder(request(more), variables);
  }

  fs::path folder_;
};

TEST_F(Folder, OpenedFolderHoldsTheRecipe) {
  open({"--lr", "0.25"});

  EXPECT_THAT(core::read_file(folder_ / RunFiles::kRecipe), HasSubstr("lr = 0.25\n"));
}

TEST_F(Folder, EarlierRunIsRemovedOnlyIfSaidSoAndNothingElseIs) {
  put(RunFiles::kStateDict);
  put("events.out.tfevents.1.host.2.0");
  put("notes.txt");

  EXPECT_EQ(error_of([&] { open(); }).code(), Code::invalid_argument);
  EXPECT_TRUE(has(RunFiles::kStateDict));
  open({"--overwrite"});

  EXPECT_FALSE(has(RunFiles::kStateDict));
  EXPECT_FALSE(has("events.out.tfevents.1.host.2.0"));
  EXPECT_TRUE(has("notes.txt"));
}

TEST_F(Folder, RunThatFailedBeforeItsFirstStepDoesNotBlockTheNext) {
  put(RunFiles::kRecipe);
  put(RunFiles::kFailure);

  open();

  EXPECT_FALSE(has(RunFiles::kFailure));
}

TEST_F(Folder, WhatAKilledRunWasWritingDoesNotBlockTheNext) {
  put(RunFiles::kRecipe);
  put(".state_dict.pt.123.0.part");

  open();

  EXPECT_FALSE(has(".state_dict.pt.123.0.part"));
}

TEST_F(Folder, AJobThatSlurmQueuedAgainGoesOnInItsFolder) {
  open();
  put(RunFiles::kLog);
  put(RunFiles::kFailure);

  EXPECT_EQ(error_of([&] { open({}, {{"SLURM_RESTART_COUNT", "0"}}); }).code(),
            Code::invalid_argument);
  open({}, {{"SLURM_RESTART_COUNT", "1"}});

  EXPECT_TRUE(has(RunFiles::kLog));
  EXPECT_FALSE(has(RunFiles::kFailure));
  EXPECT_TRUE(goes_on({}, {{"SLURM_RESTART_COUNT", "1"}}));
  EXPECT_FALSE(goes_on({}, {{"SLURM_RESTART_COUNT", "0"}}));
}

TEST_F(Folder, AJobQueuedAgainBeforeItHadAFolderBeginsOne) {
  open({}, {{"SLURM_RESTART_COUNT", "1"}});

  EXPECT_TRUE(has(RunFiles::kRecipe));
}

TEST_F(Folder, RanksAreToldThatItIsOpen) {
  const Request made = request({"--out", folder_.string()});
  launch::LaunchOptions launched;

  tell_ranks(made, launched);

  EXPECT_TRUE(is_open(folder_, launched.extra));
  EXPECT_FALSE(is_open(folder_ / "other", launched.extra));
  EXPECT_EQ(launched.failure_file, folder_ / RunFiles::kFailure);
}

/// `prefix`-images and -labels of `labels`, one 1x1 image each.
void write_set(const fs::path& folder, const std::string& prefix, const std::string& labels) {
  const auto count = static_cast<char>(labels.size());
  const std::string head{'\0', '\0', '\x08'};
  const std::string one{'\0', '\0', '\0', '\x01'};
  const std::string items{'\0', '\0', '\0', count};
  core::write_atomically(folder / (prefix + "-images-idx3-ubyte"),
                         head + '\x03' + items + one + one + labels);
  core::write_atomically(folder / (prefix + "-labels-idx1-ubyte"), head + '\x01' + items + labels);
}

settings::TrainSettings with_data(const fs::path& data, const fs::path& valid = {}) {
  settings::TrainSettings values;
  values.data = data.string();
  values.valid = valid.string();
  return values;
}

TEST_F(Folder, ClassesAreThoseOfTheTrainingLabels) {
  write_set(folder_, "train", std::string{'\0', '\2'});
  write_set(folder_, "t10k", std::string{'\1'});

  const DataSource source = find_training_data(with_data(folder_));

  EXPECT_EQ(source.num_classes, 3);
  EXPECT_EQ(source.valid, folder_);
  EXPECT_EQ(source.valid_split, feed::Split::test);
}

TEST_F(Folder, TestLabelBeyondTheTrainingClassesIsRefused) {
  write_set(folder_, "train", std::string{'\0', '\1'});
  write_set(folder_, "t10k", std::string{'\5'});

  const Error error = error_of([&] { (void)find_training_data(with_data(folder_)); });

  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("t10k-labels"), HasSubstr("label 5"), HasSubstr("2 classes")));
}

TEST_F(Folder, SyntheticImagesTakeNoValidFolder) {
  const Error error = error_of([&] { (void)find_training_data(with_data("synthetic", folder_)); });

  EXPECT_EQ(error.code(), Code::invalid_argument);
}

TEST_F(Folder, WeightsThatAreNotThereAreNamedBeforeRanksStart) {
  settings::TrainSettings values = with_data("synthetic");
  values.weights = (folder_ / "none").string();

  const Error error = error_of([&] { (void)find_training_data(values); });

  EXPECT_EQ(error.code(), Code::not_found);
  EXPECT_THAT(error.message(), HasSubstr("none"));
}

TEST_F(Folder, TheRecipeSaysHowPixelsAreNormalisedAndWhereTheDataLie) {
  write_set(folder_, "train", {'\0', '\x01'});
  write_set(folder_, "t10k", {'\0'});
  const fs::path before = fs::current_path();
  fs::current_path(folder_.parent_path());
  const Request made = train_request({"--data", folder_.filename().string(), "--std", "0.5"}, {},
                                     settings::train_schema());
  fs::current_path(before);

  const std::string recipe = settings::resolved_toml(made.settings);
  EXPECT_THAT(recipe, AllOf(HasSubstr("data = \"" + folder_.string() + "\""),
                            HasSubstr("mean = [0.0]"), HasSubstr("std = [0.5]")));
  EXPECT_THAT(
      settings::resolved_toml(
          train_request({"--data", "fashion-mnist"}, {}, settings::train_schema()).settings),
      AllOf(HasSubstr("mean = [0.286]\n"), HasSubstr("std = [0.353]\n")));
}

// Names alone: nothing here reads an image.
void write_photos(const fs::path& root, const std::vector<std::string>& classes) {
  for (const std::string& name : classes) {
    fs::create_directories(root / name);
    core::write_atomically(root / name / "1.jpg", "x");
  }
}

TEST_F(Folder, ClassFoldersAreImageFilesWithTheNumbersOfTraining) {
  write_photos(folder_ / "train", {"ant", "bee", "cat"});
  write_photos(folder_ / "val", {"cat"});

  const DataSource source = find_training_data(with_data(folder_ / "train", folder_ / "val"));

  EXPECT_EQ(source.kind, DataKind::images);
  EXPECT_EQ(source.num_classes, 3);
  EXPECT_THAT(source.class_names, ElementsAre("ant", "bee", "cat"));
  EXPECT_EQ(source.normalize.mean[0], 0.485F);
  EXPECT_EQ(class_numbers_text(source.class_names), "ant = 0, bee = 1, cat = 2");
}

TEST_F(Folder, NumbersByChannelReachImageFilesAndOneServesAllThree) {
  write_photos(folder_ / "train", {"ant"});
  write_photos(folder_ / "val", {"ant"});
  settings::TrainSettings values = with_data(folder_ / "train", folder_ / "val");
  values.mean = {0.1, 0.2, 0.3};
  values.std = {0.5};

  const DataSource source = find_training_data(values);

  EXPECT_THAT(source.normalize.mean, ElementsAre(0.1F, 0.2F, 0.3F));
  EXPECT_THAT(source.normalize.std, ElementsAre(0.5F, 0.5F, 0.5F));
}

TEST_F(Folder, ImageFilesThatDoNotBelongTogetherAreRefused) {
  write_photos(folder_ / "train", {"ant", "bee"});
  write_photos(folder_ / "val", {"bee", "eel"});
  const auto refusal = [&](const fs::path& data, const fs::path& valid, int classes = 0) {
    settings::TrainSettings values = with_data(data, valid);
    values.num_classes = classes;
    return error_of([&] { (void)find_training_data(values); });
  };

  EXPECT_THAT(refusal(folder_ / "train", folder_ / "val").message(), HasSubstr("eel"));
  EXPECT_THAT(refusal(folder_ / "train", {}).hint(), HasSubstr("--valid"));
  EXPECT_THAT(refusal(folder_, folder_ / "val").hint(),
              HasSubstr("--data " + (folder_ / "train").string()));
  EXPECT_THAT(refusal(folder_ / "train", folder_ / "train", 1).message(),
              AllOf(HasSubstr("--num-classes 1"), HasSubstr("2 classes")));
}

TEST_F(Folder, EvaluationTakesTheClassesOfTheRunElseThoseOfTraining) {
  write_photos(folder_ / "train", {"ant", "bee", "cat"});
  write_photos(folder_ / "val", {"cat"});
  fs::create_directories(folder_ / "run");
  core::write_atomically(folder_ / "run/classes.txt", "aardvark\nant\nbee\ncat\n");
  settings::TrainSettings of_run = with_data(folder_ / "gone", folder_ / "val");
  of_run.weights = (folder_ / "run").string();

  EXPECT_EQ(find_evaluation_data(of_run).class_names.size(), 4U);
  EXPECT_EQ(find_evaluation_data(with_data(folder_ / "train", folder_ / "val")).class_names.size(),
            3U);
  EXPECT_THAT(find_evaluation_data(with_data(folder_ / "val")).class_names, ElementsAre("cat"));
}

TEST_F(Folder, EvaluationOnOtherImagesNeedsNotThoseOfTraining) {
  write_photos(folder_ / "val", {"cat"});
  const auto request = [&](const fs::path& data) {
    return eval_request({"--weights", folder_.string(), "--data", data.string(), "--valid",
                         (folder_ / "val").string()},
                        {}, settings::eval_schema());
  };
  core::write_atomically(folder_ / "recipe.toml", "");

  const Request gone = request(folder_ / "gone");
  const Request by_name = request("fashion-mnist");

  EXPECT_EQ(find_evaluation_data(gone.values).kind, DataKind::images);
  EXPECT_THAT(by_name.values.mean,
              ElementsAre(0.485, 0.456, 0.406));  // the images', not the name's
}

TEST_F(Folder, TheRecipeOfImageFilesSaysWhatEvaluationSees) {
  write_photos(folder_ / "train", {"ant"});
  const Request made =
      train_request({"--data", (folder_ / "train").string(), "--train-crop-size", "64"}, {},
                    settings::train_schema());

  EXPECT_THAT(
      settings::resolved_toml(made.settings),
      AllOf(HasSubstr("mean = [0.485, 0.456, 0.406]\n"), HasSubstr("std = [0.229, 0.224, 0.225]\n"),
            HasSubstr("val-crop-size = 64\n"), HasSubstr("val-resize-size = 73\n")));
}

TEST_F(Folder, ValidFolderMayNameItsImagesAsATrainingPart) {
  write_set(folder_, "train", std::string{'\0', '\1'});

  const DataSource source = find_evaluation_data(with_data("elsewhere", folder_));

  EXPECT_EQ(source.valid_split, feed::Split::train);
}

}  // namespace
}  // namespace yoke::start
