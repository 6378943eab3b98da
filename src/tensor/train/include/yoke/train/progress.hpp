#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "yoke/core/clock.hpp"
#include "yoke/core/console.hpp"
#include "yoke/train/logger.hpp"
#include "yoke/train/trainer.hpp"

namespace yoke::train {

struct ProgressOptions {
  bool terminal = false;                  ///< a bar that is drawn over itself, else plain lines
  std::size_t columns = 80;               ///< of the terminal
  std::chrono::milliseconds redraw{100};  ///< at most that often
  std::chrono::milliseconds line{
      10'000};  ///< without a terminal: from one line within an epoch to the next
};

/// Shows how far a run is: a bar with loss, speed and time left on a terminal, lines in a pipe; one
/// line an epoch stays.
///
///   auto progress = std::make_shared<Progress>(write_to_stderr, ProgressOptions{.terminal =
///   true}); core::attach(progress->console(next));   // others' lines go above the bar Trainer
///   trainer(model, world, {.loggers = {progress}, .on_step = [&](const StepReport& r) {
///   progress->step(r); }});
///
/// Owns: what is drawn; its destructor ends an unfinished bar's line. Borrows the clock.
/// Threads: any. Errors: never throws for what cannot be shown.
/// Cost: one clock reading a step.
class Progress final : public Logger, public std::enable_shared_from_this<Progress> {
 public:
  using Write = std::function<void(std::string_view)>;

  explicit Progress(Write write, ProgressOptions options = {},
                    const core::Clock& clock = core::SystemClock::instance());
  ~Progress() override;

  void begin(const RunFacts& run) override;
  void step(const StepReport& report);
  void scalars(const Scalars& record) override;
  void end(const RunEnd& end) override;

  /// A console that takes the bar away, lets `next` write, and draws it again. It holds this
  /// object.
  [[nodiscard]] std::shared_ptr<core::Console> console(std::shared_ptr<core::Console> next);

 private:
  class Above;

  [[nodiscard]] std::string bar(std::size_t columns) const;
  [[nodiscard]] std::string facts() const;
  void draw();
  void clear();
  void keep(const std::string& line);

  Write write_;
  ProgressOptions options_;
  const core::Clock& clock_;
  std::mutex mutex_;
  RunFacts run_;
  StepReport at_;
  core::Clock::Monotonic epoch_start_;
  core::Clock::Monotonic shown_;
  NamedValues values_;  // of the last record
  bool drawn_ = false;
};

}  // namespace yoke::train
