#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "yoke/train/logger.hpp"

namespace yoke::train {

/// Which value of an evaluation tells whether it is better.
struct Monitor {
  std::string metric = "loss";
  bool higher_is_better = false;
  double min_delta = 0;  ///< a smaller gain counts as none
};

/// Follows a monitored value over evaluations: which was the best, and for how long there was no
/// better one.
///
///   Best best({.metric = "accuracy", .higher_is_better = true});
///   if (best.update(values)) save();
///   if (best.evaluations_since() >= patience) stop();
///
/// NaN is never better.
class Best {
 public:
  explicit Best(Monitor monitor) : monitor_(std::move(monitor)) {}

  /// True where `values` are the best so far.
  /// Errors: invalid_argument where the monitored name is not among them.
  bool update(const NamedValues& values);

  [[nodiscard]] std::optional<double> value() const noexcept { return best_; }
  [[nodiscard]] std::int64_t evaluations_since() const noexcept { return since_; }

  /// Goes on where another one stood.
  void restore(std::optional<double> value, std::int64_t evaluations_since) noexcept {
    best_ = value;
    since_ = evaluations_since;
  }

 private:
  Monitor monitor_;
  std::optional<double> best_;
  std::int64_t since_ = 0;
};

}  // namespace yoke::train
