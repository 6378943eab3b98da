#pragma once

#include <vector>

#include "yoke/parallel/gradient_engine.hpp"

namespace yoke::parallel {

/// Notes that a module's parameters are averaged or replicated by a wrapper, so that a second
/// wrapper is refused.
class WrapGuard {
 public:
  /// Errors: invalid_argument, naming the parameter, where one of them is wrapped already: by
  /// another wrapper of the module, of a part of it, or of what it is a part of.
  WrapGuard(const NamedTensors& parameters, const char* wrapper);
  ~WrapGuard();
  WrapGuard(const WrapGuard&) = delete;
  WrapGuard& operator=(const WrapGuard&) = delete;

 private:
  std::vector<const void*> identities_;
};

}  // namespace yoke::parallel
