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
  Wrapped& all = wrapped();
  const std::lock_guard lock(all.mutex);
  for (const auto& [name, parameter] : parameters) {
    const auto entry = all.by_parameter.find(parameter.unsafeGetTensorImpl());
    if (entry == all.by_parameter.end()) continue;
    throw Error(Code::invalid_argument,
                text(wrapper, ": the module is wrapped already, in ", entry->second, ": ", name,
                     "'s gradient would be averaged twice"),
                "wrap a module once; let the first wrapper end before wrapping it anew");
  }
  for (const auto& [name, parameter] : parameters) {
    const void* identity = parameter.unsafeGetTensorImpl();
    if (all.by_parameter.emplace(identity, wrapper).second) identities_.push_back(identity);
  }
}

WrapGuard::~WrapGuard() {
  Wrapped& all = wrapped();
  const std::lock_guard lock(all.mutex);
  for (const void* identity : identities_) all.by_parameter.erase(identity);
}

}  // namespace yoke::parallel
