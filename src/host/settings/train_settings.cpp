#include "yoke/settings/train_settings.hpp"

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "train_choices.hpp"
#include "value.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::settings {
namespace {

namespace fs = std::filesystem;
using core::Code;
using core::Error;
using core::text;

/// "nesterov = true (from recipe a.toml:3)".
std::string shown(const Settings& settings, const std::string& key) {
  const Setting& setting = settings.setting(key);
  return text(key, " = ", toml_text(setting.value), " (from ", setting.origin.text(), ")");
}

[[noreturn]] void refuse(const std::string& what, const std::string& hint) {
  throw Error(Code::invalid_argument, what, hint);
}

void require_data(const Settings& settings) {
  const std::string& data = settings.text("data");
  const std::vector<std::string>& names = data_names();
  if (std::find(names.begin(), names.end(), data) != names.end()) return;
  std::error_code error;
  if (fs::exists(data, error)) return;
  const auto near = core::nearest(data, names);
  const bool is_path = data.find('/') != std::string::npos;
  refuse(shown(settings, "data") +
             (is_path ? ": no such file or folder" : ": neither a known data set nor a path"),
         near && !is_path ? "did you mean " + *near + "?"
                          : "known: " + core::joined(names) +
                                ", or a folder of class folders, tar shards or IDX files, or an "
                                "LMDB");
}

void require_valid_path(const Settings& settings) {
  std::error_code error;
  if (!settings.is_set("valid") || fs::exists(settings.text("valid"), error)) return;
  refuse(shown(settings, "valid") + ": no such file or folder",
         "give the path of the images to evaluate on");
}

void require_channels(const Settings& settings, const char* key) {
  if (!settings.is_set(key)) return;
  const std::size_t count = settings.numbers(key).size();
  if (count != 1 && count != 3)
    refuse(text(shown(settings, key), ": ", count, " numbers"),
           "give one, or one for each of red, green and blue");
}

void require_image_sizes(const Settings& settings, const TrainSettings& out) {
  if (out.val_resize_size >= out.val_crop_size) return;
  refuse(text("val-resize-size ", out.val_resize_size, " is below val-crop-size ",
              out.val_crop_size, ": evaluation would see a black frame"),
         settings.is_set("val-resize-size") ? "give a larger --val-resize-size, or leave it out"
                                            : "give a --val-resize-size");
}

void require_device_ids(const Settings& settings, const TrainSettings& out) {
  const std::set<int> unique(out.device_ids.begin(), out.device_ids.end());
  if (unique.size() != out.device_ids.size()) {
    refuse(shown(settings, "device-ids") + ": a device stands twice", "name each device once");
  }
  const bool is_fixed = out.parallel == Parallel::ddp && out.ranks > 0 && !out.device_ids.empty();
  if (is_fixed && out.device_ids.size() != static_cast<std::size_t>(out.ranks)) {
    refuse(text(shown(settings, "ranks"), " and ", shown(settings, "device-ids"), ": ", out.ranks,
                " ranks, ", out.device_ids.size(), " devices"),
           "with --parallel ddp each rank has one device: leave one of the two out");
  }
  if (out.parallel == Parallel::none && out.device_ids.size() > 1) {
    refuse(text(shown(settings, "parallel"), " and ", shown(settings, "device-ids"),
                ": none uses one device"),
           "use --parallel ddp or dp");
  }
}

void require_parallel(const Settings& settings, const TrainSettings& out) {
  if (out.parallel != Parallel::ddp && out.ranks > 1) {
    refuse(text(shown(settings, "parallel"), " and ", shown(settings, "ranks"),
                ": this form runs in one process"),
           "leave --ranks out, or use --parallel ddp");
  }
  if (out.sync_bn && out.parallel == Parallel::dp) {
    refuse(shown(settings, "sync-bn") + " and --parallel dp: norms meet over ranks",
           "use --parallel ddp");
  }
  if (out.global_batch > 0 && out.scale_lr != ScaleLr::none) {
    refuse(text(shown(settings, "scale-lr"), " and ", shown(settings, "global-batch"),
                ": the global batch is the same for any number of ranks"),
           "leave --scale-lr out");
  }
  require_device_ids(settings, out);
}

void require_optimizer(const Settings& settings, const TrainSettings& out) {
  if (out.nesterov && out.momentum == 0) {
    refuse(text(shown(settings, "nesterov"), " needs a momentum; ", shown(settings, "momentum")),
           "give --momentum 0.9");
  }
  if (settings.numbers("betas").size() != 2) {
    refuse(shown(settings, "betas") + ": not two numbers", "write --betas 0.9,0.999");
  }
}

void require_schedule(const Settings& settings, const TrainSettings& out) {
  if (out.warmup_epochs > 0 && out.warmup_steps > 0) {
    refuse(text(shown(settings, "warmup-epochs"), " and ", shown(settings, "warmup-steps"),
                ": two lengths of one warm-up"),
           "leave one of the two out");
  }
  if (out.schedule == Schedule::step && out.step_size == 0) {
    refuse(shown(settings, "schedule") + " needs the number of epochs between its falls",
           "give --step-size 30");
  }
}

int as_int(const Settings& settings, const char* key) {
  return static_cast<int>(settings.integer(key));
}

int int_or_zero(const Settings& settings, const char* key) {
  return settings.is_set(key) ? as_int(settings, key) : 0;
}

std::string text_or_empty(const Settings& settings, const char* key) {
  return settings.is_set(key) ? settings.text(key) : std::string();
}

void take_data(TrainSettings& out, const Settings& settings) {
  out.data = settings.text("data");
  out.data_format = meaning(kDataFormats, settings.text("data-format"));
  out.valid = text_or_empty(settings, "valid");
  if (settings.is_set("mean")) out.mean = settings.numbers("mean");
  if (settings.is_set("std")) out.std = settings.numbers("std");
  out.model = settings.text("model");
  out.num_classes = as_int(settings, "num-classes");
}

void take_images(TrainSettings& out, const Settings& settings) {
  constexpr double kMiddle = 0.875;  // of the short side that evaluation sees: 224 of 256
  out.train_crop_size = as_int(settings, "train-crop-size");
  out.val_crop_size =
      settings.is_set("val-crop-size") ? as_int(settings, "val-crop-size") : out.train_crop_size;
  out.val_resize_size = settings.is_set("val-resize-size")
                            ? as_int(settings, "val-resize-size")
                            : static_cast<int>(out.val_crop_size / kMiddle);
  out.interpolation = meaning(kInterpolations, settings.text("interpolation"));
  out.auto_augment = meaning(kAutoAugments, settings.text("auto-augment"));
  out.ra_magnitude = as_int(settings, "ra-magnitude");
  out.mixup_alpha = settings.number("mixup-alpha");
  out.cutmix_alpha = settings.number("cutmix-alpha");
  out.exif = meaning(kExifs, settings.text("exif"));
  out.bad_samples = meaning(kBadSamples, settings.text("bad-samples"));
  out.most_bad = settings.integer("most-bad");
}

void take_parallel(TrainSettings& out, const Settings& settings) {
  out.parallel = meaning(kParallels, settings.text("parallel"));
  out.ranks = int_or_zero(settings, "ranks");
  for (const std::int64_t id : settings.integers("device-ids"))
    out.device_ids.push_back(static_cast<int>(id));
  out.backend = meaning(kBackends, settings.text("backend"));
  out.timeout_seconds = settings.number("timeout");
}

void take_length(TrainSettings& out, const Settings& settings) {
  out.epochs = as_int(settings, "epochs");
  out.max_steps = settings.integer("max-steps");
  out.batch_size = as_int(settings, "batch-size");
  out.accumulate = as_int(settings, "accumulate");
  out.auto_batch = settings.text("batch") == "auto";
  out.global_batch = settings.integer("global-batch");
  if (out.global_batch > 0 && out.accumulate > 1) {
    refuse(shown(settings, "global-batch") + " says how much is accumulated, and so does " +
               shown(settings, "accumulate"),
           "leave one of the two out");
  }
  out.seed = static_cast<std::uint64_t>(settings.integer("seed"));
  out.eval_every = as_int(settings, "eval-every");
  out.early_stop = as_int(settings, "early-stop");
  out.keep_best = settings.toggle("keep-best");
}

void take_optimizer(TrainSettings& out, const Settings& settings) {
  out.optimizer = meaning(kOptimizers, settings.text("optimizer"));
  const bool is_sgd = out.optimizer == Optimizer::sgd;
  out.lr = settings.is_set("lr") ? settings.number("lr") : is_sgd ? 0.1 : 0.001;
  out.scale_lr = meaning(kScaleLrs, settings.text("scale-lr"));
  out.momentum = settings.number("momentum");
  out.nesterov = settings.toggle("nesterov");
  out.weight_decay = settings.is_set("weight-decay") ? settings.number("weight-decay")
                     : is_sgd                        ? 0.0
                                                     : 0.01;
  out.eps = settings.number("eps");
  out.clip_norm = settings.number("clip-norm");
  out.ema = settings.number("ema");
  require_optimizer(settings, out);
  std::copy_n(settings.numbers("betas").begin(), 2, out.betas.begin());
}

void take_schedule(TrainSettings& out, const Settings& settings) {
  out.schedule = meaning(kSchedules, settings.text("schedule"));
  out.warmup_epochs = settings.number("warmup-epochs");
  out.warmup_steps = settings.integer("warmup-steps");
  out.step_size = int_or_zero(settings, "step-size");
  out.gamma = settings.number("gamma");
}

/// What may differ when a run goes on: nothing that its weights depend on.
bool may_differ(const std::string& key) {
  static const std::set<std::string> keys{
      "parallel",   "ranks",        "device-ids",  "backend",          "timeout",
      "workers",    "threads",      "log-every",   "checkpoint-every", "keep-checkpoints",
      "keep-every", "stop-signals", "max-restarts"};
  return keys.contains(key);
}

/// "50:55" are the steps from 50 to 54, counted from 0.
std::optional<StepRange> profiled_steps(const Settings& settings) {
  if (!settings.is_set("profile")) return {};
  const std::vector<std::string> parts = core::split(settings.text("profile"), ':');
  const auto first = parts.size() == 2 ? core::parse_integer(parts[0]) : std::nullopt;
  const auto end = parts.size() == 2 ? core::parse_integer(parts[1]) : std::nullopt;
  if (!first || !end || *first < 0 || *end <= *first) {
    refuse(shown(settings, "profile") + " is no range of steps",
           "give the first step and the one after the last, as in --profile 50:55");
  }
  return StepRange{*first, *end};
}

/// Equal, or two spellings of one path.
bool same(const Value& a, const Value& b) {
  if (a == b) return true;
  const auto* one = std::get_if<std::string>(&a);
  const auto* other = std::get_if<std::string>(&b);
  std::error_code error;
  return one != nullptr && other != nullptr && fs::equivalent(*one, *other, error);
}

/// The settings in which `now` is not what the run's recipe says, one a line.
std::vector<std::string> differences(const Settings& now, const Settings& recipe) {
  std::vector<std::string> lines;
  for (const Option& option : now.schema().options()) {
    const std::string& key = option.key;
    if (option.per_call || may_differ(key)) continue;
    if (same(now.setting(key).value, recipe.setting(key).value)) continue;
    const std::string before =
        recipe.is_set(key) ? toml_text(recipe.setting(key).value) : std::string("not set");
    lines.push_back(text(shown(now, key), ", was ", before));
  }
  return lines;
}

/// runs/<data>-<model>; of a folder its last name.
fs::path default_out(const TrainSettings& out) {
  const fs::path data = (fs::path(out.data) / "").lexically_normal().parent_path().filename();
  const std::string name = data.empty() || data == "." || data == ".." ? "data" : data.string();
  return fs::path("runs") / (name + "-" + out.model);
}

void take_machine_and_output(TrainSettings& out, const Settings& settings) {
  if (settings.is_set("workers")) out.workers = as_int(settings, "workers");
  out.threads = int_or_zero(settings, "threads");
  out.precision = meaning(kPrecisions, settings.text("precision"));
  if (settings.is_set("channels-last")) out.channels_last = settings.toggle("channels-last");
  out.sync_bn = settings.toggle("sync-bn");
  out.capture = settings.toggle("capture");
  out.weights = text_or_empty(settings, "weights");
  out.freeze = settings.texts("freeze");
  out.checkpoint_every = settings.integer("checkpoint-every");
  out.keep_checkpoints = settings.integer("keep-checkpoints");
  out.keep_every = settings.integer("keep-every");
  out.stop_signals = settings.texts("stop-signals");
  out.max_restarts = as_int(settings, "max-restarts");
  out.resume = settings.is_set("resume");
  out.out = settings.is_set("out") ? fs::path(settings.text("out")) : default_out(out);
  out.overwrite = settings.toggle("overwrite");
  out.print_config = settings.toggle("print-config");
  out.json = settings.toggle("json");
  out.log_every = as_int(settings, "log-every");
  out.profile = profiled_steps(settings);
  out.nvtx = settings.toggle("nvtx");
}

}  // namespace

TrainSettings train_settings(const Settings& settings, Purpose purpose) {
  TrainSettings out;
  take_data(out, settings);
  take_images(out, settings);
  take_parallel(out, settings);
  take_length(out, settings);
  take_optimizer(out, settings);
  take_schedule(out, settings);
  take_machine_and_output(out, settings);
  if (purpose == Purpose::training || !settings.is_set("valid")) require_data(settings);
  require_valid_path(settings);
  require_channels(settings, "mean");
  require_channels(settings, "std");
  require_image_sizes(settings, out);
  require_parallel(settings, out);
  require_schedule(settings, out);
  return out;
}

Settings resolve_train(const Schema& schema, Sources sources) {
  const Settings first = resolve(schema, sources);
  if (first.wants_help()) return first;
  if (!first.is_set("resume")) {
    if (first.text("force") != "nothing")
      refuse(shown(first, "force") + ": there is no run to go on with", "add --resume RUN");
    return first;
  }
  if (first.toggle("overwrite"))
    refuse("--resume and --overwrite: one goes on with a run, the other removes it",
           "leave one of the two out");
  const fs::path run = first.text("resume");
  const fs::path recipe = run / "recipe.toml";
  std::error_code error;
  if (!fs::exists(recipe, error)) {
    refuse(text(shown(first, "resume"), ": no recipe.toml in it"),
           "give the folder of a run of yoke train");
  }
  Settings before = resolve(schema, {.site_file = {}, .base_recipe = recipe});
  sources.base_recipe = recipe;
  Settings now = resolve(schema, std::move(sources));
  const Setting& out = first.setting("out");
  if (out.origin.source != Source::fallback && !same(out.value, run.string()))
    refuse(text(shown(first, "out"), ": a run goes on in its own folder, ", run.string()),
           "leave --out away");
  now.settle("out", run.string());
  before.settle("out", run.string());
  const std::vector<std::string> lines = differences(now, before);
  if (!lines.empty() && now.text("force") != "recipe") {
    refuse(text("going on with ", run.string(), ": ", core::joined(lines, "; ")),
           "leave that out, or add --force recipe to go on with the new settings");
  }
  return now;
}

Settings resolve_eval(const Schema& schema, Sources sources) {
  const Settings first = resolve(schema, sources);
  if (first.wants_help()) return first;
  if (!first.is_set("weights")) {
    refuse("yoke eval: no weights to evaluate",
           "give --weights FILE, or --weights RUN of a run folder");
  }
  const fs::path recipe = fs::path(first.text("weights")) / "recipe.toml";
  std::error_code error;
  if (!fs::exists(recipe, error)) return first;
  sources.base_recipe = recipe;
  return resolve(schema, sources);
}

void require_fresh_folder(const TrainSettings& settings) {
  if (settings.overwrite) return;
  std::error_code error;
  const fs::path& out = settings.out;
  if (fs::exists(out, error) && !fs::is_directory(out, error)) {
    refuse(text("run folder ", out.string(), ": this is a file"), "choose another --out");
  }
  const fs::directory_iterator files(out, error);
  if (error || files == fs::directory_iterator{}) return;
  refuse(text("run folder ", out.string(), ": not empty, it holds ",
              files->path().filename().string()),
         "choose another --out, or --overwrite to write into it");
}

}  // namespace yoke::settings
