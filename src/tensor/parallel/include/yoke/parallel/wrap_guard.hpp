#pragma once

#include "yoke/parallel/gradient_engine.hpp"

namespace yoke::parallel {

/// Notes that a module's parameters are averaged or replicated by a wrapper, so that a second
/// wrapper is refused.
class WrapGuard {
 public:
  /// Errors: invalid_argument where the parameters are wrapped already.
  WrapGuard(const NamedTensors& parameters, const char* wrapper);
  ~WrapGuard();
  WrapGuard(const WrapGuard&) = delete;
  WrapGuard& operator=(const WrapGuard&) = delete;

 private:
  const void* identity_ = nullptr;
};

}  // namespace yoke::parallel
