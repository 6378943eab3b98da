#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

namespace yoke::optim {

struct EmaOptions {
  double decay = 0.999;
};

/// A running average of a module's parameters, beside a copy of its buffers, to evaluate and save:
/// average = decay * average + (1 - decay) * parameter at each update(). It starts as the
/// parameters are.
///
///   ExponentialMovingAverage ema(*model, {.decay = 0.999});
///   optimizer.step(); ema.update();
///   { const auto averaged = ema.swapped_in(); evaluate(*model); }   // and back
///
/// Parameters that are not floating point and all buffers are copied, not averaged.
/// Ranks: replicas have equal averages without talking, as they have equal parameters.
/// Owns: the average. Shares the tensors with the module, which must keep them (values may change,
///   layers may not be replaced).
/// Threads: one at a time. Streams: on the caller's; never waits for the device.
/// Cost: one copy of the model; update() one pass over it.
class ExponentialMovingAverage {
 public:
  using Named = std::vector<std::pair<std::string, at::Tensor>>;

  explicit ExponentialMovingAverage(const torch::nn::Module& module,
                                    const EmaOptions& options = {});

  /// After each optimizer step, not after each micro-batch.
  void update();

  /// Exchanges the values of the module and the average.
  void swap();

  class [[nodiscard]] SwappedIn {
   public:
    explicit SwappedIn(ExponentialMovingAverage& ema) : ema_(ema) { ema_.swap(); }
    ~SwappedIn() { ema_.swap(); }
    SwappedIn(const SwappedIn&) = delete;
    SwappedIn& operator=(const SwappedIn&) = delete;

   private:
    ExponentialMovingAverage& ema_;
  };

  /// The module holds the average for as long as the result lives.
  SwappedIn swapped_in() { return SwappedIn(*this); }

  /// The average under the module's names; shares the tensors with this.
  [[nodiscard]] Named state_dict() const;

  /// Errors: invalid_argument, nothing changed, where names or shapes differ; names them.
  void load_state_dict(const Named& saved);

 private:
  struct Entry {
    std::string name;
    at::Tensor value;    // the module's
    at::Tensor average;  // ours
    bool averaged;       // or copied
  };

  EmaOptions options_;
  std::vector<Entry> entries_;
};

}  // namespace yoke::optim
