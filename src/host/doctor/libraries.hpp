#pragma once

#include "checks.hpp"

namespace yoke::doctor {

// Checks of which file the loader would take. They read the loader's order from the files, as
// `stack::search_places` does.
[[nodiscard]] Finding check_cudnn(const Machine& machine);
[[nodiscard]] Finding check_nccl(const Machine& machine);
[[nodiscard]] Finding check_shadows(const Machine& machine);
[[nodiscard]] Finding check_libstdcxx(const Machine& machine);
[[nodiscard]] Finding check_glibc(const Machine& machine);

}  // namespace yoke::doctor
