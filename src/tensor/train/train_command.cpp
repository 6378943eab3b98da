#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "command_parts.hpp"
#include "commands.hpp"
#include "image_data.hpp"
#include "model_setup.hpp"
#include "run_batches.hpp"
#include "yoke/checkpoint/files.hpp"
#include "yoke/checkpoint/state_dict.hpp"
#include "yoke/comm/world.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"
#include "yoke/nn/sync_batch_norm.hpp"
#include "yoke/optim/optim.hpp"
#include "yoke/optim/schedule.hpp"
#include "yoke/settings/report.hpp"
#include "yoke/start/data_source.hpp"
#include "yoke/start/run_folder.hpp"
#include "yoke/train/file_loggers.hpp"
#include "yoke/train/progress.hpp"
#include "yoke/train/stop_signals.hpp"

namespace yoke::train {
namespace {

namespace fs = std::filesystem;
using core::Json;
using start::RunFiles;

/// Lengths are in epochs in the settings, here in optimizer steps.
optim::Schedule schedule_for(const settings::TrainSettings& values, std::int64_t total_steps,
                             std::int64_t steps_per_epoch) {
  const auto steps = [&](double epochs) {
    return static_cast<std::int64_t>(std::llround(epochs * static_cast<double>(steps_per_epoch)));
  };
  optim::ScheduleOptions options{.total_steps = total_steps, .gamma = values.gamma};
  switch (values.schedule) {
    case settings::Schedule::constant: options.shape = optim::Shape::constant; break;
    case settings::Schedule::cosine: options.shape = optim::Shape::cosine; break;
    case settings::Schedule::step: options.shape = optim::Shape::step; break;
    case settings::Schedule::linear: options.shape = optim::Shape::linear; break;
  }
  if (values.step_size > 0) options.step_size = std::max<std::int64_t>(1, steps(values.step_size));
  options.warmup_steps =
      values.warmup_steps > 0 ? values.warmup_steps : steps(values.warmup_epochs);
  return optim::Schedule(options);
}

optim::LrScaling lr_scaling_of(const settings::TrainSettings& values) {
  switch (values.scale_lr) {
    case settings::ScaleLr::none: break;
    case settings::ScaleLr::linear: return optim::LrScaling::linear;
    case settings::ScaleLr::sqrt: return optim::LrScaling::square_root;
  }
  return optim::LrScaling::none;
}

std::unique_ptr<optim::Optimizer> optimizer_for(const settings::TrainSettings& values,
                                                torch::nn::Module& model, int ranks) {
  std::vector<std::pair<std::string, at::Tensor>> trained;
  for (const auto& item : model.named_parameters()) {
    if (item.value().requires_grad()) trained.emplace_back(item.key(), item.value());
  }
  const double lr = optim::scaled_lr(values.lr, ranks, lr_scaling_of(values));
  if (values.optimizer == settings::Optimizer::adamw) {
    return std::make_unique<optim::AdamW>(
        trained, optim::AdamWOptions{.lr = lr,
                                     .betas = {values.betas[0], values.betas[1]},
                                     .eps = values.eps,
                                     .weight_decay = values.weight_decay});
  }
  return std::make_unique<optim::SGD>(trained,
                                      optim::SGDOptions{.lr = lr,
                                                        .momentum = values.momentum,
                                                        .weight_decay = values.weight_decay,
                                                        .nesterov = values.nesterov});
}

std::size_t terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// The bar or the lines of rank 0, with all other words above it. At the end, of an error too, the
/// bar is taken away and the console put back.
class ShownProgress {
 public:
  ShownProgress()
      : progress_(std::make_shared<Progress>(
            write_to_stderr, ProgressOptions{.terminal = ::isatty(STDERR_FILENO) == 1,
                                             .columns = terminal_columns()})),
        before_(core::attach(nullptr)) {
    core::attach(progress_->console(before_));
  }
  ~ShownProgress() { core::attach(before_); }
  ShownProgress(const ShownProgress&) = delete;
  ShownProgress& operator=(const ShownProgress&) = delete;

  void follow(TrainerOptions& options) const {
    options.loggers.push_back(progress_);
    options.on_step = [progress = progress_](const StepReport& report) { progress->step(report); };
  }

 private:
  static void write_to_stderr(std::string_view text) {
    [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text.data(), text.size());
  }

  std::shared_ptr<Progress> progress_;
  std::shared_ptr<core::Console> before_;
};

std::vector<std::shared_ptr<Logger>> loggers_in(const fs::path& folder) {
  return {json_logger(folder / RunFiles::kLog), csv_logger(folder / RunFiles::kMetrics),
          tensorboard_logger(folder)};
}

TrainerOptions options_for(const settings::TrainSettings& values, const data::DataLoader& loader,
                           comm::World& world) {
  TrainerOptions options = trainer_options(values, world);
  options.epochs = values.epochs;
  options.max_steps = values.max_steps;
  options.accumulate = values.accumulate;
  options.clip_norm = values.clip_norm;
  options.seed = values.seed;
  options.ema = values.ema;
  options.eval_every = values.eval_every;
  options.monitor = {.metric = "accuracy", .higher_is_better = true};
  options.early_stop = values.early_stop;
  options.keep_best = values.keep_best;
  options.log_every = values.log_every;
  TrainerOptions one_epoch{.accumulate = values.accumulate};
  options.schedule =
      schedule_for(values, optimizer_steps(loader, options), optimizer_steps(loader, one_epoch));
  return options;
}

CheckpointOptions checkpoint_options(const start::Request& request, bool resume) {
  const settings::TrainSettings& values = request.values;
  CheckpointOptions options{.folder = values.out / RunFiles::kCheckpoints,
                            .every = values.checkpoint_every,
                            .keep = values.keep_checkpoints,
                            .keep_every = values.keep_every,
                            .resume = resume};
  options.about["recipe"] = settings::resolved_toml(request.settings);
  add_versions(options.about);
  return options;
}

std::int64_t numbers_in(const torch::nn::Module& model) {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : model.parameters()) count += parameter.numel();
  return count;
}

Json result_of(const TrainResult& fit, const settings::TrainSettings& values, comm::World& world,
               const torch::nn::Module& model, std::int64_t training_images) {
  Json result{
      {"accuracy", value_of(fit.evaluation, "accuracy")},
      {"loss", value_of(fit.evaluation, "loss")},
      {"images_per_second", fit.samples_per_second},
      {"ranks", world.size()},
      {"device", world.device().is_cuda() ? "cuda" : "cpu"},
      {"seconds_to_first_step", fit.seconds_to_first_step},
      {"seconds", fit.seconds},
      {"data_wait", fit.data_wait / fit.seconds},
      {"epochs", fit.epochs},
      {"steps", fit.steps},
      {"training_images", training_images},
      {"ended", fit.reason},
      {"batch_size", values.batch_size},
      {"model", values.model},
      {"data", values.data},
      {"parameters", numbers_in(model)},
      {"state_dict", fs::absolute(values.out / RunFiles::kStateDict).lexically_normal().string()},
      {"safetensors",
       fs::absolute(values.out / RunFiles::kSafetensors).lexically_normal().string()}};
  add_versions(result);
  return result;
}

std::string summary_of(const Json& result) {
  std::array<char, 256> line{};
  std::snprintf(line.data(), line.size(),
                "accuracy %.4f  loss %.4f\n%.0f images/s on %d %s (%s), %.1f s of training, first "
                "step after %.2f s\n",
                result["accuracy"].get<double>(), result["loss"].get<double>(),
                result["images_per_second"].get<double>(), result["ranks"].get<int>(),
                result["ranks"] == 1 ? "rank" : "ranks",
                result["device"].get<std::string>().c_str(), result["seconds"].get<double>(),
                result["seconds_to_first_step"].get<double>());
  return core::text(line.data(), result["state_dict"].get<std::string>(), '\n',
                    result["safetensors"].get<std::string>(), '\n');
}

/// The numbers that the model will know the classes by, for whoever uses its weights. A run that
/// goes on keeps those that it began with; whether the data still have them, its checkpoint tells.
void keep_classes(const start::DataSource& source, const fs::path& folder, bool goes_on) {
  if (source.class_names.empty()) return;
  const fs::path file = folder / RunFiles::kClasses;
  if (!goes_on || !fs::exists(file))
    core::write_atomically(file, core::joined(source.class_names, "\n") + "\n");
  core::say(core::Level::info, core::text(source.class_names.size(), " classes: ",
                                          start::class_numbers_text(source.class_names)));
}

/// Where cards lie flat for want of batches, nothing else that is tuned will help.
void say_data_wait(const TrainResult& fit, const data::DataLoader::Report& report) {
  constexpr double kWorthSaying = 0.1;
  const double part = fit.data_wait / fit.seconds;
  if (!(part > kWorthSaying)) return;
  const auto longest = std::ranges::max_element(report.stages, {}, &data::StageTime::spent);
  core::say(core::Level::info,
            core::text("steps waited ", std::llround(100 * part), " % of the time for data, from ",
                       report.workers, report.workers == 1 ? " thread" : " threads",
                       longest == report.stages.end() ? "" : ", mostly in: " + longest->name));
}

/// Rank 0, the others being done: weights first, so that a result names files that are there.
void save(const TrainResult& fit, const settings::TrainSettings& values, comm::World& world,
          const torch::nn::Module& model, std::int64_t training_images) {
  const checkpoint::StateDict state = checkpoint::state_dict(model);
  checkpoint::save_state_dict(values.out / RunFiles::kStateDict, state);
  checkpoint::save_state_dict(values.out / RunFiles::kSafetensors, state);
  const Json result = result_of(fit, values, world, model, training_images);
  core::write_atomically(values.out / RunFiles::kResult, core::json_text(result));
  print(values.json ? core::json_line(result) + "\n" : summary_of(result));
}

ProfileOptions profile_options(const settings::TrainSettings& values) {
  ProfileOptions options{.folder = values.out / "profile", .nvtx = values.nvtx};
  if (values.profile) {
    options.first = values.profile->first;
    options.end = values.profile->end;
  }
  return options;
}

// Rank 0 says how the run is to be taken up. Returns the exit code.
int stopped(const TrainResult& fit, const settings::TrainSettings& values,
            const comm::World& world) {
  if (world.is_main()) {
    core::say(core::Level::info,
              core::text(fit.reason, " at step ", fit.steps, "; to go on: yoke train --resume ",
                         values.out.string()));
  }
  return 128 + fit.stopped_by;
}

}  // namespace

int train_on_rank(comm::World& world, const start::Request& request, const ModelSet& models,
                  const core::EnvironmentMap& variables) {
  settings::TrainSettings values = request.values;
  use_threads(values);
  const StopSignals signals(values.stop_signals);
  const bool goes_on = start::goes_on(values, variables);
  if (world.is_main() && !start::is_open(values.out, variables))
    start::open_run_folder(request, variables);
  const start::DataSource source =
      said_once(world, [&] { return start::find_training_data(values); });
  if (world.is_main()) keep_classes(source, values.out, goes_on);
  const ImageData images = training_data(source, values, bad_sample_list(values.out, world.rank()));
  const models::InputOptions input = input_options(*images.training, source.num_classes);
  const auto make_model = [&] {
    return model_to_train(values, models, input, home_device(world, values));
  };
  const RunBatches batches = settle_batches(values, world, *images.training, make_model, goes_on);
  values.batch_size = static_cast<int>(batches.batch);
  values.accumulate = static_cast<int>(batches.accumulate);
  data::DataLoaderOptions how = loader_options(values);
  how.batch_transform = batch_transform(values, source.num_classes);
  data::DataLoader training = make_loader(images.training, world, how, values);
  data::DataLoader validation =
      make_loader(images.validation, world, data::evaluation(loader_options(values)), values);

  AnyModule model = make_model();
  if (values.sync_bn && nn::synchronise_norms(*model, world.group()) == 0 && world.is_main())
    core::say(core::Level::warning, "--sync-bn: model " + values.model + " has no batch norms");
  TrainerOptions options = options_for(values, training, world);
  options.checkpoints = checkpoint_options(request, goes_on);
  options.stop_signal = StopSignals::told;
  options.profile = profile_options(values);
  std::optional<ShownProgress> progress;
  if (world.is_main()) {
    options.loggers = loggers_in(values.out);
    progress.emplace().follow(options);
    if (values.keep_best) {
      options.on_best = [&] {
        checkpoint::save_state_dict(values.out / RunFiles::kBest, checkpoint::state_dict(*model));
      };
    }
  }
  const auto optimizer = optimizer_for(values, *model, static_cast<int>(batches.ranks));
  if (world.is_main() && !goes_on) keep_batches(values.out, batches);
  Trainer trainer(model, world, std::move(options));
  const TrainResult fit = trainer.fit(training, *optimizer, &validation);
  if (fit.stopped_by != 0) return stopped(fit, values, world);
  if (!world.is_main()) return 0;
  say_data_wait(fit, training.report());
  save(fit, values, world, *model, images.training->size());
  return 0;
}

}  // namespace yoke::train
