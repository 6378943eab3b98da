#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace yoke::comm {
class Group;
}
namespace yoke::optim {
class Optimizer;
}

namespace yoke::precision {

struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;  ///< steps without infinity before the scale grows
  double min_scale = 1;          ///< a scale below helps nobody: gradients are then not finite
                                 ///< for another reason
  double max_scale = 16777216;   ///< 2^24
  std::int64_t max_skips = 20;   ///< skipped steps in a row that check() lets pass
  comm::Group* group = nullptr;  ///< agrees on infinity over its ranks, where each has gradients of
                                 ///< its own (sharding); means over ranks carry it to all by
                                 ///< themselves
};

/// As Python's GradScaler.state_dict() holds it, and what a resumed run needs beside.
struct GradScalerState {
  double scale = 0;
  double growth_factor = 0;
  double backoff_factor = 0;
  std::int64_t growth_interval = 0;
  std::int64_t growth_tracker = 0;
  std::int64_t steps_taken = 0;  ///< those that were not skipped
  std::int64_t skips_in_a_row = 0;
};

/// Multiplies losses so that float16 gradients do not flush to zero, and skips the steps whose
/// gradients are not finite. All on the device: no call but check(), steps_taken() and state()
/// waits for it.
///
///   scaler.scale(loss).backward();
///   scaler.unscale(optimizer);                       // only to clip: step() does it otherwise
///   optim::clip_grad_norm_(optimizer.parameters(), 1.0);
///   scaler.step(optimizer);
///   scaler.update();
///
/// Rules: torch's: a step with an infinity or NaN halves the scale and changes no parameter;
/// growth_interval good ones in a row double it. It stays within [min_scale, max_scale].
/// A step left out by the caller: update() without step() forgets unscale().
/// Ranks: collective where a group is given. Threads: one at a time.
/// Errors: invalid_argument for a second unscale() or step() before update(), and options that
/// do not fit together.
class GradScaler {
 public:
  explicit GradScaler(at::Device device, const GradScalerOptions& options = {});

  [[nodiscard]] at::Tensor scale(const at::Tensor& loss) const;

  /// Divides the gradients by the scale and notes whether all are finite.
  void unscale(optim::Optimizer& optimizer);

  /// unscale() where it was not called, then optimizer.step() unless something was not finite.
  void step(optim::Optimizer& optimizer);

  /// Ends a step: the scale for the next one.
  void update();

  /// Optimizer steps that were not skipped: what a schedule counts. Waits for the device.
  [[nodiscard]] std::int64_t steps_taken() const;

  /// Errors: corrupt_data after max_skips skipped steps in a row; names the first parameter of
  /// `optimizer` whose gradient is not finite now. Waits for the device.
  void check(const optim::Optimizer& optimizer) const;

  [[nodiscard]] GradScalerState state() const;  ///< waits for the device
  void load(const GradScalerState& state);      ///< in place: a captured step goes on with it

 private:
  enum class Stage { scaled, unscaled, stepped };

  GradScalerOptions options_;
  Stage stage_ = Stage::scaled;
  at::Tensor scale_;      // [1] float32
  at::Tensor growth_;     // [1] int32
  at::Tensor found_inf_;  // [1] float32: since the last update()
  at::Tensor counts_;     // [2] int64: steps taken, skips in a row
};

}  // namespace yoke::precision
