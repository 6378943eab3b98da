#include <algorithm>
#include <set>
#include <utility>

#include "train_choices.hpp"
#include "yoke/settings/train_settings.hpp"

namespace yoke::settings {
namespace {

constexpr Range kFromZero{.least = 0};
constexpr Range kFromOne{.least = 1};
constexpr Range kAboveZero{.least = 0, .without_least = true};
constexpr Range kZeroToBelowOne{.least = 0, .most = 1, .without_most = true};
constexpr Range kCount{.least = 0, .most = 1e9};
constexpr Range kCountFromOne{.least = 1, .most = 1e9};
constexpr Range kPixels{.least = 1, .most = 65'500};

using Options = std::vector<Option>;

/// Makes the options that follow members of one group.
Options group(const std::string& name, Options options) {
  for (Option& option : options) option.group = name;
  return options;
}

Options data_options(const std::vector<std::string>& models) {
  const bool has_small_cnn = std::find(models.begin(), models.end(), "small-cnn") != models.end();
  const std::string model = has_small_cnn ? "small-cnn" : models.at(0);
  return group("data and model",
               {{.key = "data",
                 .fallback = "fashion-mnist",
                 .help = "fashion-mnist, synthetic, or a folder, tar archive or LMDB",
                 .metavar = "NAME|PATH"},
                {.key = "data-format",
                 .type = Type::choice,
                 .fallback = "auto",
                 .help = "what the path holds",
                 .choices = words_of(kDataFormats)},
                {.key = "valid",
                 .type = Type::path,
                 .help = "what to evaluate on",
                 .metavar = "PATH",
                 .if_unset = "the data's own test part"},
                {.key = "mean",
                 .type = Type::numbers,
                 .help = "of pixels, 0 to 1: what is taken off them, once or by channel",
                 .if_unset = "fashion-mnist's own, ImageNet's for image files, else 0"},
                {.key = "std",
                 .type = Type::numbers,
                 .help = "their deviation: what they are then divided by",
                 .if_unset = "fashion-mnist's own, ImageNet's for image files, else 1",
                 .range = kAboveZero},
                {.key = "model",
                 .type = Type::choice,
                 .fallback = model,
                 .help = "what to train",
                 .choices = models},
                {.key = "num-classes",
                 .type = Type::integer,
                 .fallback = std::int64_t{0},
                 .help = "classes of the model's head; 0: as many as the data has",
                 .range = kCount}});
}

// Spelled as in torchvision's training script where it has a word.
Options image_options() {
  return group("image files",
               {{.key = "train-crop-size",
                 .type = Type::integer,
                 .fallback = std::int64_t{224},
                 .help = "pixels a side of a training image",
                 .range = kPixels},
                {.key = "val-crop-size",
                 .type = Type::integer,
                 .help = "pixels a side of an image to evaluate on",
                 .if_unset = "as --train-crop-size",
                 .range = kPixels},
                {.key = "val-resize-size",
                 .type = Type::integer,
                 .help = "its short side before the middle is cut out",
                 .if_unset = "--val-crop-size / 0.875",
                 .range = kPixels},
                {.key = "interpolation",
                 .type = Type::choice,
                 .fallback = "bilinear",
                 .help = "of every resize",
                 .choices = words_of(kInterpolations)},
                {.key = "auto-augment",
                 .type = Type::choice,
                 .fallback = "none",
                 .help = "beside crop and flip; ra: RandAugment",
                 .choices = words_of(kAutoAugments)},
                {.key = "ra-magnitude",
                 .type = Type::integer,
                 .fallback = std::int64_t{9},
                 .help = "strength of RandAugment",
                 .range = {.least = 0, .most = 30}},
                {.key = "mixup-alpha",
                 .type = Type::number,
                 .fallback = 0.0,
                 .help = "of MixUp; 0: off",
                 .range = kFromZero},
                {.key = "cutmix-alpha",
                 .type = Type::number,
                 .fallback = 0.0,
                 .help = "of CutMix; 0: off",
                 .range = kFromZero},
                {.key = "exif",
                 .type = Type::choice,
                 .fallback = "ignore",
                 .help = "what an orientation in the file does",
                 .choices = words_of(kExifs)},
                {.key = "bad-samples",
                 .type = Type::choice,
                 .fallback = "raise",
                 .help = "an image that cannot be decoded ends the run, is left out, or replaced",
                 .choices = words_of(kBadSamples)},
                {.key = "most-bad",
                 .type = Type::integer,
                 .fallback = std::int64_t{1000},
                 .help = "different bad images on a rank; one more ends the run",
                 .range = kCount}});
}

Options parallel_options() {
  return group("devices and ranks",
               {{.key = "parallel",
                 .type = Type::choice,
                 .fallback = "ddp",
                 .help = "one process per device, one process for all, or one device",
                 .choices = words_of(kParallels)},
                {.key = "ranks",
                 .type = Type::integer,
                 .help = "processes on this machine",
                 .if_unset = "one per GPU, else 1",
                 .range = {.least = 1, .most = 4096},
                 .aliases = {"nproc-per-node"}},
                {.key = "device-ids",
                 .type = Type::integers,
                 .fallback = std::vector<std::int64_t>{},
                 .help = "the devices to use, all if empty",
                 .range = kCount},
                {.key = "backend",
                 .type = Type::choice,
                 .fallback = "auto",
                 .help = "how ranks talk",
                 .choices = words_of(kBackends)},
                {.key = "timeout",
                 .type = Type::number,
                 .fallback = 300.0,
                 .help = "limit of each wait for another rank",
                 .metavar = "SECONDS",
                 .range = {.least = 0, .most = 1e6, .without_least = true}}});
}

Options length_options() {
  return group("length and batches",
               {{.key = "epochs",
                 .type = Type::integer,
                 .fallback = std::int64_t{3},
                 .help = "passes over the data",
                 .range = kCountFromOne},
                {.key = "max-steps",
                 .type = Type::integer,
                 .fallback = std::int64_t{0},
                 .help = "stop after so many optimizer steps; 0: no limit",
                 .range = kFromZero},
                {.key = "batch-size",
                 .type = Type::integer,
                 .fallback = std::int64_t{64},
                 .help = "samples per rank and forward pass",
                 .range = kCountFromOne},
                {.key = "batch",
                 .type = Type::choice,
                 .fallback = "fixed",
                 .help = "auto: the largest batch per rank that the cards' memory holds",
                 .choices = {"fixed", "auto"}},
                {.key = "global-batch",
                 .type = Type::integer,
                 .fallback = std::int64_t{0},
                 .help = "samples per step of all ranks, by accumulation; 0: as it comes",
                 .range = kCount},
                {.key = "accumulate",
                 .type = Type::integer,
                 .fallback = std::int64_t{1},
                 .help = "forward passes per optimizer step",
                 .range = kCountFromOne},
                {.key = "seed",
                 .type = Type::integer,
                 .fallback = std::int64_t{0},
                 .help = "of weights, order and masks",
                 .range = kFromZero},
                {.key = "eval-every",
                 .type = Type::integer,
                 .fallback = std::int64_t{1},
                 .help = "epochs between evaluations; 0: only at the end",
                 .range = kCount},
                {.key = "early-stop",
                 .type = Type::integer,
                 .fallback = std::int64_t{0},
                 .help = "stop after so many evaluations without a better one; 0: never",
                 .range = kCount},
                {.key = "keep-best",
                 .type = Type::toggle,
                 .fallback = false,
                 .help = "save the best evaluation's weights, not the last"}});
}

Options optimizer_options() {
  return group("optimizer",
               {{.key = "optimizer",
                 .type = Type::choice,
                 .fallback = "sgd",
                 .help = "what steps the weights",
                 .choices = words_of(kOptimizers)},
                {.key = "lr",
                 .type = Type::number,
                 .help = "learning rate",
                 .if_unset = "0.1 for sgd, 0.001 for adamw",
                 .range = kAboveZero},
                {.key = "scale-lr",
                 .type = Type::choice,
                 .fallback = "none",
                 .help = "linear or sqrt: multiply the rate by the number of ranks, or its root",
                 .choices = words_of(kScaleLrs)},
                {.key = "momentum",
                 .type = Type::number,
                 .fallback = 0.9,
                 .help = "of sgd",
                 .range = kZeroToBelowOne},
                {.key = "nesterov", .type = Type::toggle, .fallback = false, .help = "of sgd"},
                {.key = "weight-decay",
                 .type = Type::number,
                 .help = "pull to zero",
                 .if_unset = "0 for sgd, 0.01 for adamw",
                 .range = kFromZero},
                {.key = "betas",
                 .type = Type::numbers,
                 .fallback = std::vector<double>{0.9, 0.999},
                 .help = "of adamw",
                 .range = kZeroToBelowOne},
                {.key = "eps",
                 .type = Type::number,
                 .fallback = 1e-8,
                 .help = "of adamw",
                 .range = kAboveZero},
                {.key = "clip-norm",
                 .type = Type::number,
                 .fallback = 0.0,
                 .help = "largest norm of all gradients; 0: off",
                 .range = kFromZero},
                {.key = "ema",
                 .type = Type::number,
                 .fallback = 0.0,
                 .help = "decay of averaged weights; 0: off",
                 .range = kZeroToBelowOne}});
}

Options schedule_options() {
  return group("schedule of the learning rate",
               {{.key = "schedule",
                 .type = Type::choice,
                 .fallback = "constant",
                 .help = "its form after the warm-up",
                 .choices = words_of(kSchedules)},
                {.key = "warmup-epochs",
                 .type = Type::number,
                 .fallback = 0.0,
                 .help = "epochs of linear rise",
                 .range = kFromZero},
                {.key = "warmup-steps",
                 .type = Type::integer,
                 .fallback = std::int64_t{0},
                 .help = "the same in optimizer steps",
                 .range = kFromZero},
                {.key = "step-size",
                 .type = Type::integer,
                 .help = "epochs between falls of step",
                 .range = kCountFromOne},
                {.key = "gamma",
                 .type = Type::number,
                 .fallback = 0.1,
                 .help = "factor of each fall of step",
                 .range = {.least = 0, .most = 1, .without_least = true}}});
}

Options machine_options() {
  return group("this machine", {{.key = "workers",
                                 .type = Type::integer,
                                 .help = "data threads per rank; 0: none",
                                 .if_unset = "as many as the waits for data ask for",
                                 .range = {.least = 0, .most = 1024}},
                                {.key = "threads",
                                 .type = Type::integer,
                                 .help = "compute threads per rank",
                                 .if_unset = "cores / ranks",
                                 .range = {.least = 1, .most = 4096}},
                                {.key = "precision",
                                 .type = Type::choice,
                                 .fallback = "fp32",
                                 .help = "of convolutions and products; auto: bf16 on a card "
                                         "from sm_80, fp16 on an older one, fp32 on a CPU",
                                 .choices = words_of(kPrecisions)},
                                {.key = "channels-last",
                                 .type = Type::toggle,
                                 .help = "lay images out as N, H, W, C",
                                 .if_unset = "on a card"},
                                {.key = "sync-bn",
                                 .type = Type::toggle,
                                 .fallback = false,
                                 .help = "batch norms take their statistics over all ranks"},
                                {.key = "capture",
                                 .type = Type::toggle,
                                 .fallback = true,
                                 .help = "on a card: replay the step from a CUDA graph"}});
}

Options start_options() {
  return group("start from", {{.key = "weights",
                               .type = Type::path,
                               .help = "a weights file or a run folder",
                               .metavar = "FILE|RUN",
                               .if_unset = "random weights"},
                              {.key = "freeze",
                               .type = Type::texts,
                               .fallback = std::vector<std::string>{},
                               .help = "parameters to leave as they are, with * and ?",
                               .metavar = "PATTERN"}});
}

Options checkpoint_options() {
  return group(
      "checkpoints",
      {{.key = "checkpoint-every",
        .type = Type::integer,
        .fallback = std::int64_t{0},
        .help = "optimizer steps between checkpoints; 0: each epoch; -1: only when told to stop",
        .range = {.least = -1, .most = 1e9}},
       {.key = "keep-checkpoints",
        .type = Type::integer,
        .fallback = std::int64_t{3},
        .help = "how many of the newest are kept; 0: all",
        .range = kCount},
       {.key = "keep-every",
        .type = Type::integer,
        .fallback = std::int64_t{0},
        .help = "keep those of steps that this divides for ever; 0: none",
        .range = kFromZero},
       {.key = "stop-signals",
        .type = Type::texts,
        .fallback = std::vector<std::string>{"TERM", "INT", "USR1"},
        .help = "at which a run saves itself and ends",
        .metavar = "NAME"},
       {.key = "max-restarts",
        .type = Type::integer,
        .fallback = std::int64_t{0},
        .help = "after a failure start all ranks again from the last checkpoint, so often",
        .range = kFromZero},
       {.key = "resume",
        .type = Type::path,
        .help = "go on with this run from its last checkpoint",
        .metavar = "RUN",
        .per_call = true},
       {.key = "force",
        .type = Type::choice,
        .fallback = "nothing",
        .help = "with --resume: take settings that differ from the run's",
        .choices = words_of(kForces),
        .per_call = true}});
}

Options output_options() {
  return group("recipe and output",
               {{.key = "recipe",
                 .type = Type::path,
                 .help = "a TOML file of settings",
                 .metavar = "FILE",
                 .per_call = true},
                {.key = "out",
                 .type = Type::path,
                 .help = "run folder",
                 .metavar = "DIR",
                 .if_unset = "runs/<data>-<model>"},
                {.key = "overwrite",
                 .type = Type::toggle,
                 .fallback = false,
                 .help = "write into a run folder that is not empty",
                 .per_call = true},
                {.key = "log-every",
                 .type = Type::integer,
                 .fallback = std::int64_t{50},
                 .help = "steps between lines of the log",
                 .range = kCountFromOne},
                {.key = "profile",
                 .type = Type::text,
                 .help = "record these steps: a Perfetto trace of each rank, and "
                         "a summary",
                 .metavar = "FIRST:END",
                 .if_unset = "nothing is recorded",
                 .per_call = true},
                {.key = "nvtx",
                 .type = Type::toggle,
                 .fallback = false,
                 .help = "operators as NVTX ranges, for nsys",
                 .per_call = true},
                {.key = "json",
                 .type = Type::toggle,
                 .fallback = false,
                 .help = "results as JSON on the standard output",
                 .per_call = true},
                {.key = "print-config",
                 .type = Type::toggle,
                 .fallback = false,
                 .help = "show all settings and where each came from",
                 .per_call = true}});
}

Options all_options(const std::vector<std::string>& models) {
  Options all;
  for (Options part : {data_options(models), image_options(), parallel_options(), length_options(),
                       optimizer_options(), schedule_options(), machine_options(), start_options(),
                       checkpoint_options(), output_options()}) {
    for (Option& option : part) all.push_back(std::move(option));
  }
  return all;
}

}  // namespace

const std::vector<std::string>& builtin_models() {
  static const std::vector<std::string> models{"mlp",      "small-cnn", "resnet18",
                                               "resnet34", "resnet50",  "resnet101"};
  return models;
}

Schema train_schema(const std::vector<std::string>& models, const std::string& usage) {
  return {usage, all_options(models)};
}

Schema eval_schema(const std::vector<std::string>& models, const std::string& usage) {
  static const std::set<std::string> shown{
      "data",       "data-format",   "valid",           "model",         "num-classes",
      "parallel",   "ranks",         "device-ids",      "backend",       "timeout",
      "batch-size", "workers",       "threads",         "precision",     "channels-last",
      "weights",    "val-crop-size", "val-resize-size", "interpolation", "bad-samples",
      "recipe",     "json",          "print-config"};
  Options options = all_options(models);
  for (Option& option : options) option.hidden = !shown.contains(option.key);
  return {usage, std::move(options)};
}

}  // namespace yoke::settings
