#pragma once

#include <utility>
#include <vector>

#include <torch/types.h>

namespace yoke::nn {

/// What a run of a function depends on besides its arguments: random generators and autocast.
class Surroundings {
 public:
  /// Those of this thread now: generators of the CPU and of the devices of `inputs`, or none.
  static Surroundings now(const std::vector<at::Tensor>& inputs, bool with_generators);

  /// Makes them those of this thread.
  void restore() const;

  /// What restore() would overwrite.
  [[nodiscard]] Surroundings replaced() const;

 private:
  struct Autocast {
    at::DeviceType device;
    bool enabled;
    at::ScalarType dtype;
  };

  static Surroundings of(std::vector<at::Device> devices);

  std::vector<std::pair<at::Device, at::Tensor>> generators_;  // state by device
  std::vector<Autocast> autocast_;
  bool autocast_caches_ = true;
};

/// Inside: the given surroundings. Outside again: those from before, also after an exception.
class Within {
 public:
  explicit Within(const Surroundings& surroundings);
  ~Within();
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  Surroundings before_;
};

}  // namespace yoke::nn
