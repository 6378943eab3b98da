#include "serial_torch.hpp"

#include <dlfcn.h>

#include <ATen/Parallel.h>

namespace yoke::data {
namespace {

// at::set_num_threads() speaks for the process, OpenMP's own functions for the thread that calls.
// They are looked up because torch brings its own OpenMP, which is the one that has to hear it.
struct OpenMp {
  using Get = int (*)();
  using Set = void (*)(int);

  Get threads = reinterpret_cast<Get>(::dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  Set set_threads = reinterpret_cast<Set>(::dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
};

const OpenMp& open_mp() {
  static const OpenMp found;
  return found;
}

}  // namespace

SerialTorch::SerialTorch() : before_(1) {
  if (open_mp().threads == nullptr || open_mp().set_threads == nullptr) return;
  at::internal::lazy_init_num_threads();  // or a thread's first operation would undo it
  before_ = open_mp().threads();
  if (before_ > 1) open_mp().set_threads(1);
}

SerialTorch::~SerialTorch() {
  if (before_ > 1) open_mp().set_threads(before_);
}

}  // namespace yoke::data
