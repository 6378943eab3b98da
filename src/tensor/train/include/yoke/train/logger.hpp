#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace yoke::train {

/// Names and values in the order in which they are to be shown.
using NamedValues = std::vector<std::pair<std::string, double>>;

/// What is known before the first step.
struct RunFacts {
  std::string device = "cpu";  ///< of rank 0
  int ranks = 1;
  std::int64_t epochs = 0;
  std::int64_t steps_per_epoch = 0;
  std::int64_t batch_size = 0;  ///< per rank and micro-batch
  std::int64_t accumulate = 1;
  std::int64_t parameters = 0;  ///< numbers in them
  std::int64_t resumed_at = 0;  ///< the step of the checkpoint it goes on from; 0: from the start
};

/// Values that belong to one optimizer step: means over all ranks since the record before, or over
/// an epoch.
struct Scalars {
  enum class Of { steps, epoch };
  Of of = Of::steps;
  std::int64_t epoch = 0;
  std::int64_t step = 0;  ///< optimizer steps done in the whole run
  NamedValues values{};
};

/// How the run ended.
struct RunEnd {
  std::string reason = "done";  ///< done, early stop, failed
  std::int64_t epochs = 0;
  std::int64_t steps = 0;
  NamedValues values{};
};

/// Where a run's numbers go. Rank 0 calls it; three functions make another one.
///
/// Threads: one at a time. Errors: what they throw ends the run: a log that cannot be written is
/// not left out silently.
class Logger {
 public:
  Logger() = default;
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;
  virtual ~Logger() = default;

  virtual void begin(const RunFacts& run) = 0;
  virtual void scalars(const Scalars& record) = 0;
  virtual void end(const RunEnd& end) = 0;
};

}  // namespace yoke::train
