#include "step_profile.hpp"

#include <string>

#include "yoke/comm/world.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"
#include "yoke/profile/summary.hpp"

namespace yoke::train {

using core::text;

StepProfile::StepProfile(const ProfileOptions& options, comm::World& world)
    : options_(options), world_(world) {
  if (options.nvtx) nvtx_.emplace();
}

StepProfile::~StepProfile() {
  if (recorder_) finish();
}

void StepProfile::before_step(std::int64_t step) {
  if (recorder_ || options_.end == 0 || step < options_.first || step >= options_.end) return;
  if (recorded_ > 0) return;
  try {
    recorder_ = std::make_unique<profile::Recorder>();
  } catch (const std::exception& error) {
    core::say(core::Level::warning, text("rank ", world_.rank(), ": no profile: ", error.what()));
    recorded_ = 1;  // it is not tried again
  }
}

void StepProfile::after_step(std::int64_t done) {
  if (!recorder_) return;
  ++recorded_;
  if (done >= options_.end) finish();
}

void StepProfile::finish() noexcept {
  try {
    recorder_->stop();
    write();
  } catch (const std::exception& error) {
    core::say(core::Level::warning,
              text("rank ", world_.rank(), ": the profile is lost: ", error.what()));
  }
  recorder_.reset();
}

void StepProfile::write() {
  std::filesystem::create_directories(options_.folder);
  const auto file = options_.folder / text("rank", world_.rank(), ".json");
  recorder_->save(file);
  const profile::Summary summary = profile::summarise(recorder_->events(), recorded_);
  core::write_atomically(options_.folder / text("summary", world_.rank(), ".json"),
                         core::json_text(profile::to_json(summary)));
  if (!world_.is_main()) return;
  for (const std::string& line : profile::lines(summary)) core::say(core::Level::info, line);
  core::say(core::Level::info, text("trace: ", file.string(), ", for ui.perfetto.dev"));
}

}  // namespace yoke::train
