#include "serial_torch.hpp"

#include <dlfcn.h>

#include <ATen/Parallel.h>

namespace yoke::data {
namespace {

using SetThreads = void (*)(int);

// at::set_num_threads() speaks for the process, OpenMP's own function for the thread that calls. It
// is looked up because torch brings its own OpenMP, which is the one that has to hear it.
SetThreads open_mp() {
  static const auto set =
      reinterpret_cast<SetThreads>(::dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  return set;
}

}  // namespace

// Asking torch first also makes it set this thread's number, which it does once a thread.
SerialTorch::SerialTorch() : before_(at::get_num_threads()) {
  if (before_ > 1 && open_mp() != nullptr) open_mp()(1);
}

SerialTorch::~SerialTorch() {
  if (before_ > 1 && open_mp() != nullptr) open_mp()(before_);
}

}  // namespace yoke::data
