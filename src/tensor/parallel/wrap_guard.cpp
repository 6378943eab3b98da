#include "yoke/parallel/wrap_guard.hpp"

#include <map>
#include <mutex>
#include <string>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::parallel {
namespace {

using core::text;

struct Wrapped {
  std::mutex mutex;
  std::map<const void*, std::string> by_parameter;
};

Wrapped& wrapped() {
  static Wrapped all;
  return all;
}

}  // namespace

WrapGuard::WrapGuard(const NamedTensors& parameters, const char* wrapper) {
  if (parameters.empty()) {
    throw Error(Code::invalid_argument, text(wrapper, ": the module has no parameters"),
                "there is nothing to wrap");
  }
  const void* identity = parameters.front().second.unsafeGetTensorImpl();
  Wrapped& all = wrapped();
  const std::lock_guard lock(all.mutex);
  const auto [entry, added] = all.by_parameter.emplace(identity, wrapper);
  if (!added) {
    throw Error(Code::invalid_argument,
                text(wrapper, ": the module is wrapped already, in ", entry->second,
                     ": its gradients would be averaged twice"),
                "wrap a module once; let the first wrapper end before wrapping it anew");
  }
  identity_ = identity;
}

WrapGuard::~WrapGuard() {
  Wrapped& all = wrapped();
  const std::lock_guard lock(all.mutex);
  all.by_parameter.erase(identity_);
}

}  // namespace yoke::parallel
