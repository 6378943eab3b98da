#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "yoke/profile/recorder.hpp"
#include "yoke/train/trainer.hpp"

namespace yoke::train {

// The recording of some steps of a run, as ProfileOptions says. What goes wrong with it is a
// warning: training goes on. A run that ends before the last of them leaves what was recorded.
class StepProfile {
 public:
  StepProfile(const ProfileOptions& options, comm::World& world);
  ~StepProfile();
  StepProfile(const StepProfile&) = delete;
  StepProfile& operator=(const StepProfile&) = delete;

  // `step` counts from 0: the one that begins now.
  void before_step(std::int64_t step);

  // `done`: steps of the run that are done.
  void after_step(std::int64_t done);

 private:
  void finish() noexcept;
  void write();

  const ProfileOptions& options_;
  comm::World& world_;
  std::optional<profile::NvtxRanges> nvtx_;
  std::unique_ptr<profile::Recorder> recorder_;  // while it records
  int recorded_ = 0;                             // steps
};

}  // namespace yoke::train
