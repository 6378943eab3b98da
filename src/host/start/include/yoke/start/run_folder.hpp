#pragma once

#include <filesystem>

#include "yoke/core/environment.hpp"
#include "yoke/launch/supervise.hpp"
#include "yoke/start/request.hpp"

namespace yoke::start {

/// The names in a run folder; docs/train.md says what each holds. Beside them:
/// events.out.tfevents.*, TensorBoard's.
struct RunFiles {
  static constexpr const char* kRecipe = "recipe.toml";
  static constexpr const char* kBatches = "batches.json";
  static constexpr const char* kClasses = "classes.txt";
  static constexpr const char* kBadSamples = "bad_samples.jsonl";
  static constexpr const char* kLog = "log.jsonl";
  static constexpr const char* kMetrics = "metrics.csv";
  static constexpr const char* kProfile = "profile";          // a folder
  static constexpr const char* kCheckpoints = "checkpoints";  // a folder
  static constexpr const char* kBest = "best.pt";
  static constexpr const char* kStateDict = "state_dict.pt";
  static constexpr const char* kSafetensors = "model.safetensors";
  static constexpr const char* kResult = "result.json";
  static constexpr const char* kFailure = "failure.json";
};

/// The variable by which the process that opened the run folder tells its ranks so: the folder's
/// absolute path.
inline constexpr const char* kRunFolderVariable = "YOKE_RUN_FOLDER";

/// Makes the run folder ready for a new run: proves that it can be written, removes what an earlier
/// run left in it and writes the recipe. A folder in which a run failed before its first step
/// counts as fresh. One that goes on (--resume, or a Slurm job that was queued again) keeps all but
/// its failure, and its recipe changes with --force recipe only.
///
/// Errors: invalid_argument for a folder with other files, without --overwrite; io where it cannot
/// be written.
void open_run_folder(const Request& request, const core::EnvironmentMap& variables);

/// Tells the ranks that the folder is open, and the launcher to leave a failure in it.
void tell_ranks(const Request& request, launch::LaunchOptions& options);

/// Whether the run goes on from its checkpoints: by --resume, or because a launcher started its
/// ranks once more, or Slurm its job.
[[nodiscard]] bool goes_on(const settings::TrainSettings& settings,
                           const core::EnvironmentMap& variables);

/// Whether the process that started this rank has opened the folder.
[[nodiscard]] bool is_open(const std::filesystem::path& folder,
                           const core::EnvironmentMap& variables);

}  // namespace yoke::start
