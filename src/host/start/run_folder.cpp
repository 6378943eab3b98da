#include "yoke/start/run_folder.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <system_error>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"
#include "yoke/settings/report.hpp"

namespace yoke::start {
namespace {

namespace fs = std::filesystem;

constexpr std::array kRunFiles{RunFiles::kRecipe,     RunFiles::kBatches,     RunFiles::kClasses,
                               RunFiles::kBadSamples, RunFiles::kLog,         RunFiles::kMetrics,
                               RunFiles::kProfile,    RunFiles::kCheckpoints, RunFiles::kBest,
                               RunFiles::kResult,     RunFiles::kSafetensors, RunFiles::kStateDict,
                               RunFiles::kFailure};

/// What a killed run was writing (core::AtomicFile).
bool is_unfinished(const std::string& name) { return core::matches_pattern(name, ".*.part"); }

bool is_run_file(const std::string& name) {
  return is_unfinished(name) ||
         std::find(kRunFiles.begin(), kRunFiles.end(), name) != kRunFiles.end() ||
         core::matches_pattern(name, "events.out.tfevents.*");
}

/// All that a run leaves that ended before its first step.
bool failed_before_training(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool is_early = name == RunFiles::kRecipe || name == RunFiles::kBatches ||
                          name == RunFiles::kClasses || name == RunFiles::kFailure ||
                          is_unfinished(name);
    if (!is_early) return false;
  }
  return !error;
}

void remove_earlier_run(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (!is_run_file(entry.path().filename().string())) continue;
    std::error_code error;
    fs::remove_all(entry.path(), error);
    if (error)
      throw Error(Code::io, core::text("remove ", entry.path().string(),
                                       " of an earlier run: ", error.message()));
  }
}

void write_recipe(const Request& request) {
  core::write_atomically(request.values.out / RunFiles::kRecipe,
                         settings::resolved_toml(request.settings));
}

void reopen(const Request& request) {
  const fs::path& folder = request.values.out;
  core::make_writable_folder(folder);
  std::error_code ignored;  // where it cannot go, the next one is written over it
  fs::remove(folder / RunFiles::kFailure, ignored);
  if (request.settings.text("force") == "recipe") write_recipe(request);
}

}  // namespace

void open_run_folder(const Request& request, const core::EnvironmentMap& variables) {
  const fs::path& folder = request.values.out;
  const bool begun = fs::exists(folder / RunFiles::kRecipe);
  if (request.values.resume || (begun && goes_on(request.values, variables)))
    return reopen(request);
  if (!failed_before_training(folder)) settings::require_fresh_folder(request.values);
  core::make_writable_folder(folder);
  remove_earlier_run(folder);
  write_recipe(request);
}

void tell_ranks(const Request& request, launch::LaunchOptions& options) {
  options.extra[kRunFolderVariable] = fs::absolute(request.values.out).string();
  options.failure_file = request.values.out / RunFiles::kFailure;
}

bool goes_on(const settings::TrainSettings& settings, const core::EnvironmentMap& variables) {
  const auto again = [&](const char* name) {
    return core::parse_integer(core::value_or(variables, name)).value_or(0) > 0;
  };
  return settings.resume || again("TORCHELASTIC_RESTART_COUNT") || again("SLURM_RESTART_COUNT");
}

bool is_open(const fs::path& folder, const core::EnvironmentMap& variables) {
  return core::value_or(variables, kRunFolderVariable) == fs::absolute(folder).string();
}

}  // namespace yoke::start
