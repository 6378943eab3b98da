#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "yoke/settings/resolve.hpp"
#include "yoke/settings/schema.hpp"

namespace yoke::settings {

enum class DataFormat { detect, idx, images };
enum class Interpolation { bilinear, bicubic, nearest };
enum class AutoAugment { none, ra };
enum class Exif { ignore, apply };
enum class BadSamples { raise, skip, substitute };
enum class Parallel { ddp, dp, none };
enum class Backend { detect, shm, gloo, nccl };
enum class Optimizer { sgd, adamw };
enum class ScaleLr { none, linear, sqrt };
enum class Schedule { constant, cosine, step, linear };
enum class Precision { fp32, tf32, bf16, fp16, automatic };
enum class Force { nothing, recipe };

/// The models that Yoke brings.
[[nodiscard]] const std::vector<std::string>& builtin_models();

/// Optimizer steps of a run, counted from 0.
struct StepRange {
  std::int64_t first = 0;
  std::int64_t end = 0;  ///< the one after the last
};

/// All settings of a training run, checked. Names are those of the flags; docs/settings.md lists
/// them.
struct TrainSettings {
  std::string data;  ///< fashion-mnist, synthetic, or a path
  DataFormat data_format = DataFormat::detect;
  std::string valid;         ///< empty: the set's own test part
  std::vector<double> mean;  ///< of the pixels as fractions, one or by channel; none: the data's
  std::vector<double> std;   ///< the same
  std::string model;
  int num_classes = 0;  ///< 0: as in the data

  int train_crop_size = 0;  ///< pixels a side
  int val_crop_size = 0;
  int val_resize_size = 0;  ///< of the short side
  Interpolation interpolation = Interpolation::bilinear;
  AutoAugment auto_augment = AutoAugment::none;
  int ra_magnitude = 0;
  double mixup_alpha = 0;   ///< 0: off
  double cutmix_alpha = 0;  ///< 0: off
  Exif exif = Exif::ignore;
  BadSamples bad_samples = BadSamples::raise;
  std::int64_t most_bad = 0;  ///< different images on a rank

  Parallel parallel = Parallel::ddp;
  int ranks = 0;  ///< 0: one per GPU, else 1
  std::vector<int> device_ids;
  Backend backend = Backend::detect;
  double timeout_seconds = 0;  ///< of each wait for another rank

  int epochs = 0;
  std::int64_t max_steps = 0;  ///< 0: no limit
  int batch_size = 0;          ///< per rank and micro-batch
  int accumulate = 0;
  bool auto_batch = false;        ///< the largest that fits takes batch_size's place
  std::int64_t global_batch = 0;  ///< samples a step of all ranks, by accumulation; 0: as it comes
  std::uint64_t seed = 0;

  Optimizer optimizer = Optimizer::sgd;
  double lr = 0;
  ScaleLr scale_lr = ScaleLr::none;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  std::array<double, 2> betas{};
  double eps = 0;
  double clip_norm = 0;  ///< 0: off

  Schedule schedule = Schedule::constant;
  double warmup_epochs = 0;
  std::int64_t warmup_steps = 0;
  int step_size = 0;  ///< epochs; schedule step
  double gamma = 0;

  std::optional<int> workers;  ///< nothing: as many as needed
  int threads = 0;             ///< 0: cores / ranks
  Precision precision = Precision::fp32;
  std::optional<bool> channels_last;  ///< nothing: on a card
  bool sync_bn = false;
  bool capture = false;

  double ema = 0;      ///< decay; 0: off
  int early_stop = 0;  ///< epochs without a better result; 0: off
  bool keep_best = false;
  int eval_every = 0;  ///< epochs; 0: only at the end

  std::string weights;  ///< a file or a run folder; empty: none
  std::vector<std::string> freeze;

  std::int64_t checkpoint_every =
      0;  ///< optimizer steps; 0: each epoch; -1: only when told to stop
  std::int64_t keep_checkpoints = 0;      ///< of the newest; 0: all
  std::int64_t keep_every = 0;            ///< and of steps that this divides; 0: none
  std::vector<std::string> stop_signals;  ///< at which the run is saved and ends
  int max_restarts = 0;                   ///< of all ranks, after a failure
  bool resume = false;                    ///< the run in `out` goes on

  std::filesystem::path out;
  bool overwrite = false;
  bool print_config = false;
  bool json = false;
  int log_every = 0;  ///< steps

  std::optional<StepRange> profile;  ///< steps to record
  bool nvtx = false;
};

/// The table of `yoke train` and of a program's own yoke::train::main. `models` are the names that
/// --model takes; the default is small-cnn if it is among them, else the first.
[[nodiscard]] Schema train_schema(const std::vector<std::string>& models = builtin_models(),
                                  const std::string& usage = "yoke train [flags]");

/// The same options for `yoke eval`, so that it reads a run's recipe; its help shows those that
/// matter to it.
[[nodiscard]] Schema eval_schema(const std::vector<std::string>& models = builtin_models(),
                                 const std::string& usage = "yoke eval --weights FILE|RUN [flags]");

enum class Purpose { training, evaluation };

/// The values of train_schema(), and what no single option can check. Evaluation on --valid does
/// not need --data, which a run's recipe names and may have lain on another machine.
/// Errors: invalid_argument, with the origin of the value: a data name that is neither known nor a
///   path, a combination that cannot be (Nesterov without momentum, two warm-ups, --parallel dp
///   over several ranks, ...).
[[nodiscard]] TrainSettings train_settings(const Settings& settings,
                                           Purpose purpose = Purpose::training);

/// resolve() for `yoke train`: where --resume names a run folder, the recipe in it stands below all
/// but the site file, and `out` is that folder.
/// Errors: those of resolve(); invalid_argument where RUN holds no recipe, and, without
/// --force recipe, where a setting differs that the weights depend on, naming both values. Settings
/// of the machine (ranks, threads, ...), of the log and of checkpoints may differ.
[[nodiscard]] Settings resolve_train(const Schema& schema, Sources sources);

/// resolve() for `yoke eval`: where --weights names a run folder, the recipe in it stands below all
/// but the site file, so that data and model need not be said again. Errors: those of resolve(),
/// and invalid_argument without --weights.
[[nodiscard]] Settings resolve_eval(const Schema& schema, Sources sources);

/// Refuses a run folder that already holds files, unless `overwrite` is set. Called once per run,
/// before ranks start. Errors: invalid_argument, naming the folder and one of its files.
void require_fresh_folder(const TrainSettings& settings);

}  // namespace yoke::settings
