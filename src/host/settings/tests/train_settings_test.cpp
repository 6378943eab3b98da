#include "yoke/settings/train_settings.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch_folder.hpp"
#include "yoke/core/error.hpp"

namespace yoke::settings {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Arguments = std::vector<std::string>;

TrainSettings settings_of(Arguments arguments, const Schema& schema = train_schema()) {
  return train_settings(
      resolve(schema, {.arguments = std::move(arguments), .site_file = "/nonexistent/site.toml"}));
}

core::Error refusal(const Arguments& arguments) {
  try {
    (void)settings_of(arguments);
  } catch (const core::Error& error) {
    return error;
  }
  return {core::Code::internal, "nothing was refused"};
}

TEST(TrainSettings, DefaultsTrainSomethingAtOnce) {
  const TrainSettings settings = settings_of({});

  EXPECT_EQ(settings.data, "fashion-mnist");
  EXPECT_EQ(settings.model, "small-cnn");
  EXPECT_EQ(settings.parallel, Parallel::ddp);
  EXPECT_EQ(settings.ranks, 0);
  EXPECT_EQ(settings.batch_size, 64);
  EXPECT_EQ(settings.optimizer, Optimizer::sgd);
  EXPECT_EQ(settings.lr, 0.1);
  EXPECT_EQ(settings.weight_decay, 0.0);
  EXPECT_EQ(settings.out, "runs/fashion-mnist-small-cnn");
  EXPECT_THAT(settings.freeze, IsEmpty());
  EXPECT_THAT(settings.betas, ElementsAre(0.9, 0.999));
}

TEST(TrainSettings, DataAndDeviceFlagsReachTheirFields) {
  const ScratchFolder folder;

  const TrainSettings s = settings_of({"--data",
                                       "synthetic",
                                       "--data-format",
                                       "idx",
                                       "--valid",
                                       folder.path().string(),
                                       "--model",
                                       "resnet34",
                                       "--num-classes",
                                       "12",
                                       "--ranks",
                                       "2",
                                       "--device-ids",
                                       "1,0",
                                       "--backend",
                                       "gloo",
                                       "--timeout",
                                       "7.5",
                                       "--workers",
                                       "3",
                                       "--threads",
                                       "1",
                                       "--precision",
                                       "fp32",
                                       "--channels-last",
                                       "--weights",
                                       "w.pt",
                                       "--freeze",
                                       "conv1.*",
                                       "--out",
                                       "o",
                                       "--overwrite",
                                       "--print-config",
                                       "--json",
                                       "--log-every",
                                       "11"});

  EXPECT_EQ(s.data, "synthetic");
  EXPECT_EQ(s.data_format, DataFormat::idx);
  EXPECT_EQ(s.valid, folder.path());
  EXPECT_EQ(s.model, "resnet34");
  EXPECT_EQ(s.num_classes, 12);
  EXPECT_EQ(s.ranks, 2);
  EXPECT_THAT(s.device_ids, ElementsAre(1, 0));
  EXPECT_EQ(s.backend, Backend::gloo);
  EXPECT_EQ(s.timeout_seconds, 7.5);
  EXPECT_EQ(s.workers, 3);
  EXPECT_EQ(s.threads, 1);
  EXPECT_EQ(s.precision, Precision::fp32);
  EXPECT_TRUE(s.channels_last);
  EXPECT_EQ(s.weights, "w.pt");
  EXPECT_THAT(s.freeze, ElementsAre("conv1.*"));
  EXPECT_EQ(s.out, "o");
  EXPECT_TRUE(s.overwrite);
  EXPECT_TRUE(s.print_config);
  EXPECT_TRUE(s.json);
  EXPECT_EQ(s.log_every, 11);
}

TEST(TrainSettings, LoopAndOptimizerFlagsReachTheirFields) {
  const TrainSettings s = settings_of({"--epochs",
                                       "4",
                                       "--max-steps",
                                       "9",
                                       "--batch-size",
                                       "8",
                                       "--accumulate",
                                       "2",
                                       "--seed",
                                       "5",
                                       "--optimizer",
                                       "sgd",
                                       "--lr",
                                       "0.5",
                                       "--scale-lr",
                                       "linear",
                                       "--momentum",
                                       "0.7",
                                       "--nesterov",
                                       "--weight-decay",
                                       "0.25",
                                       "--betas",
                                       "0.1,0.2",
                                       "--eps",
                                       "0.5",
                                       "--clip-norm",
                                       "3",
                                       "--schedule",
                                       "step",
                                       "--warmup-epochs",
                                       "0.5",
                                       "--step-size",
                                       "6",
                                       "--gamma",
                                       "0.5",
                                       "--ema",
                                       "0.99",
                                       "--early-stop",
                                       "2",
                                       "--keep-best",
                                       "--eval-every",
                                       "3"});

  EXPECT_EQ(s.epochs, 4);
  EXPECT_EQ(s.max_steps, 9);
  EXPECT_EQ(s.batch_size, 8);
  EXPECT_EQ(s.accumulate, 2);
  EXPECT_EQ(s.seed, 5U);
  EXPECT_EQ(s.lr, 0.5);
  EXPECT_EQ(s.scale_lr, ScaleLr::linear);
  EXPECT_EQ(s.momentum, 0.7);
  EXPECT_TRUE(s.nesterov);
  EXPECT_EQ(s.weight_decay, 0.25);
  EXPECT_THAT(s.betas, ElementsAre(0.1, 0.2));
  EXPECT_EQ(s.eps, 0.5);
  EXPECT_EQ(s.clip_norm, 3.0);
  EXPECT_EQ(s.schedule, Schedule::step);
  EXPECT_EQ(s.warmup_epochs, 0.5);
  EXPECT_EQ(s.step_size, 6);
  EXPECT_EQ(s.gamma, 0.5);
  EXPECT_EQ(s.ema, 0.99);
  EXPECT_EQ(s.early_stop, 2);
  EXPECT_TRUE(s.keep_best);
  EXPECT_EQ(s.eval_every, 3);
  EXPECT_EQ(settings_of({"--warmup-steps", "30"}).warmup_steps, 30);
}

TEST(TrainSettings, ImageFlagsReachTheirFields) {
  const TrainSettings s = settings_of({"--data-format",
                                       "images",
                                       "--mean",
                                       "0.5,0.4,0.3",
                                       "--std",
                                       "0.25",
                                       "--train-crop-size",
                                       "176",
                                       "--val-crop-size",
                                       "192",
                                       "--val-resize-size",
                                       "200",
                                       "--interpolation",
                                       "bicubic",
                                       "--auto-augment",
                                       "ra",
                                       "--ra-magnitude",
                                       "7",
                                       "--mixup-alpha",
                                       "0.2",
                                       "--cutmix-alpha",
                                       "1",
                                       "--exif",
                                       "apply",
                                       "--bad-samples",
                                       "substitute",
                                       "--most-bad",
                                       "3"});

  EXPECT_EQ(s.data_format, DataFormat::images);
  EXPECT_THAT(s.mean, ElementsAre(0.5, 0.4, 0.3));
  EXPECT_THAT(s.std, ElementsAre(0.25));
  EXPECT_EQ(s.train_crop_size, 176);
  EXPECT_EQ(s.val_crop_size, 192);
  EXPECT_EQ(s.val_resize_size, 200);
  EXPECT_EQ(s.interpolation, Interpolation::bicubic);
  EXPECT_EQ(s.auto_augment, AutoAugment::ra);
  EXPECT_EQ(s.ra_magnitude, 7);
  EXPECT_EQ(s.mixup_alpha, 0.2);
  EXPECT_EQ(s.cutmix_alpha, 1.0);
  EXPECT_EQ(s.exif, Exif::apply);
  EXPECT_EQ(s.bad_samples, BadSamples::substitute);
  EXPECT_EQ(s.most_bad, 3);
}

TEST(TrainSettings, EvaluationSeesTheMiddleSevenEighthsUnlessToldOtherwise) {
  const TrainSettings s = settings_of({});
  const TrainSettings small = settings_of({"--train-crop-size", "128"});

  EXPECT_EQ(s.val_crop_size, 224);
  EXPECT_EQ(s.val_resize_size, 256);
  EXPECT_EQ(small.val_crop_size, 128);
  EXPECT_EQ(small.val_resize_size, 146);  // 128 / 0.875, rounded down as torchvision does
  EXPECT_THAT(refusal({"--val-resize-size", "200"}).message(),
              HasSubstr("val-resize-size 200 is below val-crop-size 224"));
  EXPECT_THAT(refusal({"--mean", "0.5,0.5"}).message(), HasSubstr("2 numbers"));
}

TEST(TrainSettings, EveryWordOfAChoiceHasItsMeaning) {
  EXPECT_EQ(settings_of({"--parallel", "dp"}).parallel, Parallel::dp);
  EXPECT_EQ(settings_of({"--parallel", "none"}).parallel, Parallel::none);
  EXPECT_EQ(settings_of({"--backend", "auto"}).backend, Backend::detect);
  EXPECT_EQ(settings_of({"--backend", "shm"}).backend, Backend::shm);
  EXPECT_EQ(settings_of({"--backend", "nccl"}).backend, Backend::nccl);
  EXPECT_EQ(settings_of({"--schedule", "cosine"}).schedule, Schedule::cosine);
  EXPECT_EQ(settings_of({"--schedule", "linear"}).schedule, Schedule::linear);
  EXPECT_EQ(settings_of({"--optimizer", "adamw"}).optimizer, Optimizer::adamw);
}

TEST(TrainSettings, RatesThatAreNotGivenFitTheOptimizer) {
  EXPECT_EQ(settings_of({"--optimizer", "adamw"}).lr, 0.001);
  EXPECT_EQ(settings_of({"--optimizer", "adamw"}).weight_decay, 0.01);
  EXPECT_EQ(settings_of({"--optimizer", "adamw", "--weight-decay", "0"}).weight_decay, 0.0);
}

TEST(TrainSettings, AFolderGivesTheRunItsLastName) {
  const ScratchFolder folder;
  folder.write("digits/x", "");
  const std::string data = (folder.path() / "digits").string();

  EXPECT_EQ(settings_of({"--data", data}).out, "runs/digits-small-cnn");
  EXPECT_EQ(settings_of({"--data", data + "/"}).out, "runs/digits-small-cnn");
}

TEST(TrainSettings, AnUnknownModelOrDataNameIsAnsweredWithTheNearest) {
  EXPECT_EQ(refusal({"--model", "resnet51"}).hint(), "did you mean resnet50?");
  EXPECT_EQ(refusal({"--data", "fashion-mnits"}).hint(), "did you mean fashion-mnist?");
  EXPECT_THAT(refusal({"--data", "fashion-mnits"}).message(),
              HasSubstr("data = \"fashion-mnits\" (from flag)"));
  EXPECT_THAT(refusal({"--data", "./none"}).message(), HasSubstr("no such file or folder"));
  EXPECT_THAT(refusal({"--valid", "./none"}).message(), HasSubstr("no such file or folder"));
}

TEST(TrainSettings, AProgramsOwnModelsAreItsChoices) {
  const Schema schema = train_schema({"mine", "other"}, "my-program [flags]");

  EXPECT_EQ(settings_of({}, schema).model, "mine");
  EXPECT_EQ(settings_of({"--model", "other"}, schema).model, "other");
  EXPECT_THROW((void)settings_of({"--model", "mlp"}, schema), core::Error);
}

TEST(TrainSettings, NumbersThatCannotBeAreRefused) {
  EXPECT_THAT(refusal({"--ranks", "0"}).hint(),
              HasSubstr("at least 1 and at most 4096; leave it out for: one per GPU, else 1"));
  for (const Arguments& flags : std::vector<Arguments>{{"--nproc-per-node", "0"},
                                                       {"--batch-size", "0"},
                                                       {"--batch-size", "-4"},
                                                       {"--batch-size", "3000000000"},
                                                       {"--epochs", "0"},
                                                       {"--lr", "nan"},
                                                       {"--lr", "inf"},
                                                       {"--lr", "0"},
                                                       {"--lr", "-0.1"},
                                                       {"--momentum", "1"},
                                                       {"--seed", "-1"},
                                                       {"--accumulate", "0"},
                                                       {"--ema", "1"},
                                                       {"--gamma", "0"},
                                                       {"--timeout", "0"},
                                                       {"--threads", "0"},
                                                       {"--precision", "bf8"},
                                                       {"--log-every", "0"},
                                                       {"--max-steps", "-1"},
                                                       {"--device-ids", "-1"}}) {
    EXPECT_EQ(refusal(flags).code(), core::Code::invalid_argument) << flags[0] << " " << flags[1];
  }
}

TEST(TrainSettings, CombinationsThatCannotBeNameBothSides) {
  EXPECT_THAT(
      refusal({"--nesterov", "--momentum", "0"}).message(),
      HasSubstr("nesterov = true (from flag) needs a momentum; momentum = 0.0 (from flag)"));
  EXPECT_THAT(refusal({"--betas", "0.9"}).message(), HasSubstr("not two numbers"));
  EXPECT_THAT(refusal({"--warmup-epochs", "1", "--warmup-steps", "5"}).message(),
              HasSubstr("two lengths"));
  EXPECT_THAT(refusal({"--schedule", "step"}).hint(), HasSubstr("--step-size"));
  EXPECT_THAT(refusal({"--parallel", "dp", "--ranks", "2"}).message(), HasSubstr("one process"));
  EXPECT_THAT(refusal({"--parallel", "none", "--device-ids", "0,1"}).message(),
              HasSubstr("none uses one device"));
  EXPECT_THAT(refusal({"--device-ids", "0,0"}).message(), HasSubstr("a device stands twice"));
  EXPECT_THAT(refusal({"--ranks", "3", "--device-ids", "0,1"}).message(),
              HasSubstr("3 ranks, 2 devices"));
  EXPECT_EQ(settings_of({"--parallel", "dp", "--device-ids", "0,1,2"}).device_ids.size(), 3U);
}

TEST(EvalSettings, ARunFolderBringsItsDataAndModel) {
  const ScratchFolder run;
  run.write("recipe.toml",
            "model = \"resnet18\"\ndata = \"synthetic\"\nbatch-size = 16\nmomentum = 0.3\n");

  const TrainSettings settings = train_settings(resolve_eval(
      eval_schema(), {.arguments = {"--weights", run.path().string(), "--batch-size", "4"},
                      .site_file = "/nonexistent/site.toml"}));

  EXPECT_EQ(settings.model, "resnet18");
  EXPECT_EQ(settings.data, "synthetic");
  EXPECT_EQ(settings.batch_size, 4);
  EXPECT_EQ(settings.weights, run.path());
}

TEST(EvalSettings, WithoutWeightsThereIsNothingToEvaluate) {
  const auto resolved = [](Arguments arguments) {
    return resolve_eval(eval_schema(),
                        {.arguments = std::move(arguments), .site_file = "/nonexistent/site.toml"});
  };

  EXPECT_THROW((void)resolved({}), core::Error);
  EXPECT_TRUE(resolved({"--help"}).wants_help());
  EXPECT_EQ(resolved({"--weights", "w.pt"}).text("model"), "small-cnn");
}

TEST(RunFolder, WithFilesOfAnEarlierRunIsRefusedUnlessAllowed) {
  const ScratchFolder folder;
  folder.write("run/log.jsonl", "{}");
  folder.write("file", "");
  const auto refused = [&](const Arguments& flags) {
    try {
      require_fresh_folder(settings_of(flags));
    } catch (const core::Error& error) {
      return error.message();
    }
    return std::string();
  };
  const std::string run = (folder.path() / "run").string();

  EXPECT_EQ(refused({"--out", run}), "run folder " + run + ": not empty, it holds log.jsonl");
  EXPECT_EQ(refused({"--out", run, "--overwrite"}), "");
  EXPECT_EQ(refused({"--out", (folder.path() / "new").string()}), "");
  EXPECT_THAT(refused({"--out", (folder.path() / "file").string()}), HasSubstr("this is a file"));
}

/// What resolve_train() refuses; empty: nothing.
std::string refusal_to_go_on(Arguments arguments) {
  try {
    (void)resolve_train(train_schema(),
                        {.arguments = std::move(arguments), .site_file = "/nonexistent/site.toml"});
  } catch (const core::Error& error) {
    return error.message();
  }
  return {};
}

TEST(ResumeSettings, TheRunsRecipeHoldsAndItsFolderIsTheOutput) {
  const ScratchFolder folder;
  (void)folder.write("recipe.toml", "lr = 0.05\nranks = 2\nout = \"elsewhere\"\n");
  const std::string run = folder.path().string();

  const TrainSettings s =
      train_settings(resolve_train(train_schema(), {.arguments = {"--resume", run, "--ranks", "3"},
                                                    .site_file = "/nonexistent/site.toml"}));

  EXPECT_TRUE(s.resume);
  EXPECT_EQ(s.lr, 0.05);
  EXPECT_EQ(s.ranks, 3);
  EXPECT_EQ(s.out, run);
}

TEST(ResumeSettings, WhatWouldChangeTheWeightsIsRefused) {
  const ScratchFolder folder;
  (void)folder.write("recipe.toml", "lr = 0.05\n");
  const std::string run = folder.path().string();

  EXPECT_THAT(refusal_to_go_on({"--resume", run, "--lr", "0.2"}),
              HasSubstr("lr = 0.2 (from flag), was 0.05"));
  EXPECT_EQ(refusal_to_go_on({"--resume", run, "--lr", "0.2", "--force", "recipe"}), "");
  EXPECT_EQ(refusal_to_go_on({"--resume", run, "--lr", "0.05", "--log-every", "3"}), "");
  EXPECT_THAT(refusal_to_go_on({"--resume", run, "--out", "/nonexistent/other"}),
              HasSubstr("in its own folder"));
  EXPECT_THAT(refusal_to_go_on({"--resume", run, "--overwrite"}), HasSubstr("--overwrite"));
  EXPECT_THAT(refusal_to_go_on({"--resume", "/nonexistent/run"}), HasSubstr("no recipe.toml"));
  EXPECT_THAT(refusal_to_go_on({"--force", "recipe"}), HasSubstr("no run to go on with"));
}

}  // namespace
}  // namespace yoke::settings
